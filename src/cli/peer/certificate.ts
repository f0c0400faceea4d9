/** The files of `--http-cert` and `--http-key`. They are read again when they change, as certificates expire while a peer runs. */
import { unwatchFile, watchFile } from 'node:fs'
import type { Log } from '../../peer/index.js'
import type { HttpServer, TlsFiles } from '../../server/index.js'
import { UsageError } from '../errors.js'
import { readText } from './files.js'

/** Between two looks at the files, in milliseconds. */
const INTERVAL_MS = 2000

export interface CertificateFlags {
  readonly httpCert?: string
  readonly httpKey?: string
}

/** Undefined without the options. @throws UsageError */
export async function readCertificate({ httpCert, httpKey }: CertificateFlags): Promise<TlsFiles | undefined> {
  if (httpCert === undefined && httpKey === undefined) return undefined
  if (httpCert === undefined || httpKey === undefined) {
    throw new UsageError('HTTPS needs a certificate and its key: give both --http-cert and --http-key')
  }
  const [cert, key] = await Promise.all([readText(httpCert, '--http-cert'), readText(httpKey, '--http-key')])
  return { cert, key }
}

/** @returns a server that uses new files as soon as both fit together, and stops watching when it closes */
export function renewed(server: HttpServer, flags: CertificateFlags, log: Log): HttpServer {
  const files = [flags.httpCert, flags.httpKey].filter(file => file !== undefined)
  const changed = async () => {
    try {
      const tls = await readCertificate(flags)
      if (tls) server.renew(tls)
      log('info', 'the certificate of HTTPS has been renewed', {})
    } catch (error) {
      // Also between the writes of the two files, so this is not yet an error.
      log('warn', `the changed certificate is not used: ${(error as Error).message}`, {})
    }
  }
  for (const file of files) watchFile(file, { interval: INTERVAL_MS, persistent: false }, changed)
  return {
    ...server,
    close: () => {
      for (const file of files) unwatchFile(file, changed)
      return server.close()
    }
  }
}
