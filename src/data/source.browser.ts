/** In place of files and standard input: `#source` in `package.json`. */
import { PlatformError } from '../platform/browser/index.js'

function refuse(): PlatformError {
  return new PlatformError('a peer in a browser reads no files: give it the rows')
}

/** @throws PlatformError */
export async function checkSource(_path: string): Promise<boolean> {
  throw refuse()
}

/** @throws PlatformError */
export function readSource(..._given: readonly unknown[]): AsyncGenerator<Uint8Array> {
  throw refuse()
}

/** @throws PlatformError */
export async function readPackaged(_name: string): Promise<Uint8Array> {
  throw refuse()
}

/** The name of an input in messages. */
export function sourceName(path: string): string {
  return path
}
