/** Reads the files of keys and allow-lists. */
import { readFile } from 'node:fs/promises'
import { UsageError } from '../errors.js'

/** @throws UsageError, DamagedKeyError */
export async function readKey(file: string): Promise<Uint8Array> {
  const { parseNetworkKey } = await import('../../network/index.js')
  return parseNetworkKey(await readText(file, '--network-key'))
}

/** Peer ids, one per line; `#` starts a comment. @throws UsageError, MalformedPeerIdError */
export async function readAllowList(file: string): Promise<Set<string>> {
  const { parsePeerId } = await import('../../network/index.js')
  const lines = (await readText(file, '--allow')).toString('utf8').split('\n')
  return new Set(
    lines
      .map(line => line.replace(/#.*/, '').trim())
      .filter(Boolean)
      .map(parsePeerId)
  )
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
