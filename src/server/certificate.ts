/** The certificate of HTTPS, and its replacement while the server runs. */
import { createSecureContext, Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { HttpCertificateError } from './errors.js'
import type { TlsFiles } from './options.js'

/** @throws HttpCertificateError if the certificate and the key cannot be read, or do not belong together */
export function checkCertificate(tls: TlsFiles): void {
  try {
    createSecureContext(tls)
  } catch (error) {
    // OpenSSL's message ends with the reason.
    throw new HttpCertificateError((error as Error).message.split(':').at(-1)?.trim() ?? '')
  }
}

/** Connections that are open keep the previous certificate. @throws HttpCertificateError */
export function replaceCertificate({ server }: FastifyInstance, tls: TlsFiles): void {
  checkCertificate(tls)
  if (server instanceof TlsServer) server.setSecureContext(tls)
}
