/**
 * Determines what listens on a TCP port without any key: a peer with a network key sends a nonce of 24 bytes at once; one
 * without waits for the multistream header and echoes it; other services do neither.
 */
import { connect, type Socket } from 'node:net'

export type PortProbe =
  | { readonly kind: 'open' | 'keyed' | 'silent' }
  /** Not libp2p. `banner`: the first bytes it sent, printable. */
  | { readonly kind: 'foreign'; readonly banner: string }

const NONCE_BYTES = 24
/** Pause after which the received bytes are considered complete, in ms. */
const PAUSE_MS = 300
/** Length prefix, `/multistream/1.0.0` and a newline. */
const MULTISTREAM = Buffer.from('\x13/multistream/1.0.0\n', 'latin1')

/**
 * @param wait time limit in ms, for the connection and for the answer
 * @throws the operating system's error if the port cannot be reached, or an error with code ETIMEDOUT
 */
export async function probePort(host: string, port: number, wait: number): Promise<PortProbe> {
  const socket = await open(host, port, wait)
  try {
    const unasked = await readFirstBytes(socket, wait / 4)
    if (unasked.length > 0) return classify(unasked)
    socket.write(MULTISTREAM)
    const answer = await readFirstBytes(socket, wait)
    return answer.length === 0 ? { kind: 'silent' } : classify(answer)
  } finally {
    socket.destroy()
  }
}

function classify(bytes: Buffer): PortProbe {
  if (isMultistream(bytes)) return { kind: 'open' }
  if (bytes.length === NONCE_BYTES) return { kind: 'keyed' }
  const line = bytes.toString('latin1').split(/[\r\n]/)[0]
  return { kind: 'foreign', banner: line.slice(0, 40).replace(/[^\x20-\x7e]/g, '?') }
}

function open(host: string, port: number, wait: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: wait })
    socket.once('connect', () => resolve(socket.setTimeout(0)))
    socket.once('timeout', () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })))
    // The listener stays, so that later errors are not unhandled.
    socket.on('error', reject)
  })
}

/** The first bytes received, from any number of chunks; empty if none arrive in time or before the end. */
function readFirstBytes(socket: Socket, wait: number): Promise<Buffer> {
  return new Promise(resolve => {
    let bytes = Buffer.alloc(0)
    const done = () => {
      clearTimeout(timer)
      socket.off('data', onData).off('close', done).off('end', done)
      resolve(bytes)
    }
    const onData = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      clearTimeout(timer)
      if (bytes.length >= NONCE_BYTES || isMultistream(bytes)) done()
      else timer = setTimeout(done, PAUSE_MS)
    }
    let timer = setTimeout(done, wait)
    socket.on('data', onData).on('close', done).on('end', done)
  })
}

function isMultistream(bytes: Buffer): boolean {
  return bytes.subarray(0, MULTISTREAM.length).equals(MULTISTREAM)
}
