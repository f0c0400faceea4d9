/** Peers of a test of the library: small, of two classes, on this machine, and stopped after each test. */
import { type CreatePeerOptions, createPeer, type LearningPeer } from '../../src/library/create-peer.js'

/**
 * Call it in a `describe`.
 * @param common options of all peers
 * @returns creates a peer
 */
export function libraryPeers(
  common: Partial<CreatePeerOptions>
): (options: Partial<CreatePeerOptions>) => Promise<LearningPeer> {
  const peers: LearningPeer[] = []
  afterEach(async () => {
    await Promise.all(peers.splice(0).map(peer => peer.stop()))
  })
  return async options => {
    const listen = ['/ip4/127.0.0.1/tcp/0']
    const peer = await createPeer({ features: 2, classNames: ['no', 'yes'], period: 20, listen, ...common, ...options })
    peers.push(peer)
    return peer
  }
}
