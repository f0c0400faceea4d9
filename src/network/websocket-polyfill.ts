/**
 * Node 20 has no global `WebSocket`, with which libp2p dials; the package `ws`, with which it listens, has one. libp2p begins to
 * read a moment after `open`, and what came with the last bytes of the opening would be lost, such as the nonce that a network
 * key begins with: so nothing is handed over until then.
 */
import { WebSocket } from 'ws'

class DeferredWebSocket extends WebSocket {
  constructor(address: string) {
    super(address)
    this.once('open', () => {
      this.pause()
      setImmediate(() => this.resume())
    })
  }
}

const global = globalThis as { WebSocket?: unknown }
global.WebSocket ??= DeferredWebSocket
