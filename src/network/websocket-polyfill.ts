/**
 * The global `WebSocket` with which libp2p dials, which Node.js 20 lacks. It repairs what libp2p expects of a browser's:
 *
 * - libp2p starts to read a moment after `open`. Data that arrives with the end of the opening handshake, such as the nonce of a
 *   network key, would be lost, so reading is paused until then.
 * - libp2p has no `error` listener once the socket is open, and an `error` event without a listener ends the process.
 */
import { WebSocket } from 'ws'

class DeferredWebSocket extends WebSocket {
  constructor(address: string) {
    super(address)
    closeOnError(this)
    this.once('open', () => {
      this.pause()
      setImmediate(() => this.resume())
    })
  }
}

const global = globalThis as { WebSocket?: unknown }
global.WebSocket ??= DeferredWebSocket

/** The close code of an aborted connection. libp2p passes it to `close`, which refuses it as reserved. */
const abnormalClosure = 1006

/** Terminates a socket that fails, or that libp2p aborts. */
export function closeOnError(websocket: WebSocket): void {
  websocket.on('error', () => websocket.terminate())
  const close = websocket.close.bind(websocket)
  websocket.close = (code, reason) => (code === abnormalClosure ? websocket.terminate() : close(code, reason))
}
