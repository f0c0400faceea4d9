/** Reads the files of keys, allow-lists and invitations. */
import { readFile } from 'node:fs/promises'
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
