/** Where a peer listens: at the given addresses, or on the default port, or on a free port if that one is in use. */
import type { Peer } from '../../peer/index.js'
import { DEFAULT_PORT } from '../options/table.js'

/** @param start starts a peer with these listen addresses */
export async function startListening(
  asked: readonly string[] | undefined,
  start: (listen: readonly string[]) => Promise<Peer>
): Promise<Peer> {
  if (asked !== undefined) return start(asked)
  try {
    return await start([`/ip4/0.0.0.0/tcp/${DEFAULT_PORT}`])
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_ADDRESS_IN_USE') throw error
    return start(['/ip4/0.0.0.0/tcp/0'])
  }
}
