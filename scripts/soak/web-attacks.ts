/** Attacks on the two servers that accept HTTP: the peer's own, and the listener for WebSockets. */
import { type Attack, closed, garbage, hold, open, strike, type Target } from './attack.js'

const get = (path: string, headers = '') => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n`)
const post = (bytes: number) =>
  Buffer.from(
    `POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`
  )
const upgrade = get(
  '/',
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
)
const httpOf = ({ httpPort }: Target) => httpPort as number

export const httpAttacks: Readonly<Record<string, Attack>> = {
  'HTTP garbage': (target, random) => strike(httpOf(target), garbage(random, 1 + random.below(2000))),
  'HTTP open sockets': (target, _random, sockets) => hold(httpOf(target), Buffer.alloc(0), sockets),
  'HTTP slow requests': (target, random, sockets) =>
    hold(httpOf(target), get('/status').subarray(0, 5 + random.below(20)), sockets),
  'HTTP huge headers': target => strike(httpOf(target), get('/status', `X: ${'x'.repeat(100_000)}\r\n`)),
  'HTTP huge bodies': (target, random) =>
    strike(httpOf(target), Buffer.concat([post(2 ** 40), garbage(random, 100_000)])),
  'HTTP unfinished bodies': (target, random, sockets) =>
    hold(httpOf(target), Buffer.concat([post(8_000_000), garbage(random, 100_000)]), sockets),
  'HTTP malformed bodies': (target, random) => strike(httpOf(target), Buffer.concat([post(500), garbage(random, 500)])),
  'HTTP unknown paths': async (target, random) => {
    const socket = await open(httpOf(target))
    if (socket === undefined) return 0
    const requests = 50
    for (let i = 0; i < requests; i++) socket.write(get(`/${random.integer()}`))
    await closed(socket, 50)
    return requests
  }
}

export const webSocketAttacks: Readonly<Record<string, Attack>> = {
  'WebSocket connect and hold': ({ webSocketPort }, _random, sockets) => hold(webSocketPort, Buffer.alloc(0), sockets),
  'WebSocket upgrade garbage': ({ webSocketPort }, random) =>
    strike(webSocketPort, Buffer.concat([upgrade.subarray(0, random.below(upgrade.length)), garbage(random, 500)])),
  'WebSocket malformed frames': (target, random) => afterUpgrade(target, garbage(random, 100)),
  'WebSocket oversized frames': (target, random) => {
    const header = Buffer.alloc(14)
    header.set([0x82, 0xff])
    header.writeBigUInt64BE(BigInt(2 ** 26), 2)
    return afterUpgrade(target, Buffer.concat([header, garbage(random, 200_000)]))
  }
}

async function afterUpgrade({ webSocketPort }: Target, bytes: Uint8Array): Promise<number> {
  const socket = await open(webSocketPort)
  if (socket === undefined) return 0
  socket.once('data', () => socket.write(bytes))
  socket.write(upgrade)
  await closed(socket, 50)
  return 1
}
