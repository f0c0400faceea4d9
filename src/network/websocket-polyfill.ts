/**
 * A global `WebSocket`, which Node.js 20 lacks and libp2p uses for dialling, from the package `ws`. libp2p starts to read a moment
 * after `open`, so the socket is paused until then: data that arrives with the last bytes of the HTTP upgrade (such as the nonce
 * of a network key) would be lost otherwise.
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
