/**
 * What listens behind a TCP port, as far as it tells before any key is needed: a peer with a network key begins with a nonce of
 * 24 bytes, one without waits for the first line of multistream and repeats it, and everything else does neither.
 */
import { connect, type Socket } from 'node:net'

export type PortProbe =
  | { readonly kind: 'open' | 'keyed' | 'silent' }
  /** No libp2p. `said`: its first words, printable. */
  | { readonly kind: 'foreign'; readonly banner: string }

const NONCE_BYTES = 24
/** After so long without more, in milliseconds, what came is all. */
const PAUSE_MS = 300
/** Length, then `/multistream/1.0.0` and a newline. */
const MULTISTREAM = Buffer.from('\x13/multistream/1.0.0\n', 'latin1')

/**
 * @param wait how long the other end has for its first words, twice, in milliseconds
 * @throws the operating system's error if the port cannot be reached, with `code` ETIMEDOUT if it is silent for `wait`
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
  const said = bytes.toString('latin1').split(/[\r\n]/)[0]
  return { kind: 'foreign', banner: said.slice(0, 40).replace(/[^\x20-\x7e]/g, '?') }
}

function open(host: string, port: number, wait: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: wait })
    socket.once('connect', () => resolve(socket.setTimeout(0)))
    socket.once('timeout', () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })))
    // Also later, when nobody waits for anything any more.
    socket.on('error', reject)
  })
}

/** The first words that come, in as many pieces as they may; none if none come in time, or before the end. */
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
