/**
 * WebSockets with bounds on what a connection can hold before libp2p knows of it. The listener of `@libp2p/websockets`
 * accepts messages of 100 MiB, waits for the opening handshake without a time limit, and lets a malformed frame end the
 * process. It has no options for these, so its servers are configured after it is created.
 *
 * The global `WebSocket` with which libp2p dials, which Node.js 20 lacks. It repairs what libp2p expects of a browser's:
 *
 * - libp2p starts to read a moment after `open`. Data that arrives with the end of the opening handshake, such as the nonce of a
 *   network key, would be lost, so reading is paused until then.
 * - libp2p has no `error` listener once the socket is open, and an `error` event without a listener ends the process.
 */
import type { Server, Socket } from 'node:net'
import type { Listener, Transport, Upgrader } from '@libp2p/interface'
import { type WebSocketsComponents, webSockets } from '@libp2p/websockets'
import { WebSocket } from 'ws'
import type { Limits } from './limits.js'
import { maxTransportMessageBytes } from './protector.js'
import type { AcceptUpgrade, WebSocketUpgrades } from './types.js'
import './polyfill.js'

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

/**
 * WebSockets with bounds on what a connection can hold before libp2p knows of it. The listener of `@libp2p/websockets`
 * accepts messages of 100 MiB, waits for the opening handshake without a time limit, and lets a malformed frame end the
 * process. It has no options for these, so its servers are configured after it is created.
 */
type Upgraded = (websocket: WebSocket, request: unknown) => void

/** The fields of the listener that are used here. They are private in its types. */
interface ListenerServers {
  readonly server: Server
  readonly onUpgrade: AcceptUpgrade
  readonly wsServer: {
    readonly options: { maxPayload?: number; closeTimeout?: number }
    handleUpgrade(request: unknown, socket: Socket, head: Uint8Array, upgraded: Upgraded): void
  }
}

/** The libp2p transport. @param upgrades connections that an HTTP server receives @default none */
export function boundedWebSockets(
  limits: Limits,
  upgrades?: WebSocketUpgrades
): (components: WebSocketsComponents & { readonly upgrader: Upgrader }) => Transport {
  const create = webSockets()
  return components => {
    const transport = create(components)
    const createListener = transport.createListener.bind(transport)
    transport.createListener = options => bound(createListener(options), limits)
    upgrades?.attach(acceptor(transport, components.upgrader))
    return transport
  }
}

/** A listener that does not listen itself. It asks for its address only to know that it is not closed. */
function acceptor(transport: Transport, upgrader: Upgrader): AcceptUpgrade {
  const listener = transport.createListener({ upgrader }) as unknown as ListenerServers
  listener.server.address = () => ({ address: '127.0.0.1', family: 'IPv4', port: 0 })
  return (request, socket, head) => listener.onUpgrade(request, socket, head)
}

function bound(listener: Listener, { connections, inboundPerSecond, dialTimeoutMs }: Limits): Listener {
  const { server, wsServer } = listener as unknown as ListenerServers
  wsServer.options.maxPayload = maxTransportMessageBytes
  wsServer.options.closeTimeout = dialTimeoutMs
  server.maxConnections = connections + inboundPerSecond
  const deadlines = new WeakMap<Socket, NodeJS.Timeout>()
  server.on('connection', socket => {
    const deadline = setTimeout(() => socket.destroy(), dialTimeoutMs)
    deadlines.set(socket, deadline)
    socket.once('close', () => clearTimeout(deadline))
  })
  const handleUpgrade = wsServer.handleUpgrade.bind(wsServer)
  wsServer.handleUpgrade = (request, socket, head, upgraded) =>
    handleUpgrade(request, socket, head, (websocket, upgradedRequest) => {
      clearTimeout(deadlines.get(socket))
      closeOnError(websocket)
      upgraded(websocket, upgradedRequest)
    })
  return listener
}
