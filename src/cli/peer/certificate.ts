/** The files of `--http-cert`. They are read again when they change, as certificates expire while a peer runs. */
import { unwatchFile, watchFile } from 'node:fs'
import type { Log } from '../../peer/index.js'
import type { HttpServer, TlsFiles } from '../../server/index.js'
import { readText } from './files.js'

/** Between two looks at the files, in milliseconds. */
const INTERVAL_MS = 2000

export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** @throws UsageError */
export async function readCertificate(files: CertificateFiles): Promise<TlsFiles> {
  const [cert, key] = await Promise.all([readText(files.cert, '--http-cert'), readText(files.key, '--http-cert')])
  return { cert, key }
}

/** @returns a server that uses new files as soon as both fit together, and stops watching when it closes */
export function renewed(server: HttpServer, files: CertificateFiles | undefined, log: Log): HttpServer {
  if (files === undefined) return server
  const watched = new Set([files.cert, files.key])
  const changed = async () => {
    try {
      server.renew(await readCertificate(files))
      log('info', 'the certificate of HTTPS has been renewed', {})
    } catch (error) {
      // Also between the writes of the two files, so this is not yet an error.
      log('warn', `the changed certificate is not used: ${(error as Error).message}`, {})
    }
  }
  for (const file of watched) watchFile(file, { interval: INTERVAL_MS, persistent: false }, changed)
  return {
    ...server,
    close: () => {
      for (const file of watched) unwatchFile(file, changed)
      return server.close()
    }
  }
}
