/** The files of keys, certificates, allow-lists and invitations. */

import { unwatchFile, watchFile } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Log } from '../../peer/index.js'
import type { HttpServer, TlsFiles } from '../../server/index.js'
import { UsageError } from '../errors.js'

/** @throws UsageError, DamagedKeyError */
export async function readKey(file: string): Promise<Uint8Array> {
  const { parseNetworkKey } = await import('../../network/index.js')
  return parseNetworkKey(await readText(file, '--network-key'))
}

/** Peer ids, one per line; `#` starts a comment. @param option that names the file @throws UsageError, MalformedPeerIdError */
export async function readPeerIds(file: string, option: string): Promise<Set<string>> {
  const { parsePeerId } = await import('../../network/index.js')
  const lines = (await readText(file, option)).toString('utf8').split('\n')
  return new Set(
    lines
      .map(line => line.replace(/#.*/, '').trim())
      .filter(Boolean)
      .map(parsePeerId)
  )
}

/** @param given an invitation, or a file with one @throws UsageError, MalformedInvitationError */
export async function readInvitation(given: string): Promise<string> {
  const { decodeToken } = await import('../../network/index.js')
  const isText = given.includes('~')
  const text = isText ? given : (await readText(given, '--invitation')).toString('utf8')
  decodeToken(text)
  return text.trim()
}

/** @param option the option that names the file, for the message @throws UsageError */
export async function readText(file: string, option: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    throw new UsageError(
      `cannot read ${file} (${(error as NodeJS.ErrnoException).code}): check the path after ${option}`
    )
  }
}

/** Between two looks at the files, in milliseconds. */
const INTERVAL_MS = 2000

export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** @throws UsageError */
export async function readCertificate(files: CertificateFiles): Promise<TlsFiles> {
  const [cert, key] = await Promise.all([readText(files.cert, 'cert in --http'), readText(files.key, 'key in --http')])
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
