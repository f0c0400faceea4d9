/**
 * Diagnosis of a failed connection, step by step in protocol order. Each step requires the previous one, so the first step that
 * fails is the one to fix. The first steps need neither keys nor libp2p: name resolution, route, open port, and what listens on
 * it.
 */

import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { connect, isIPv6, type Socket } from 'node:net'
import { parseAddress, tcpEndOf } from './addresses.js'
import * as errors from './errors.js'
import type { Hello } from './hello.js'
import type { Network } from './network.js'

/**
 * Determines what listens on a TCP port without any key: a peer with a network key sends a nonce of 24 bytes at once; one
 * without waits for the multistream header and echoes it; other services do neither.
 */
type PortProbe =
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
async function probePort(host: string, port: number, wait: number): Promise<PortProbe> {
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

type StepName = 'name' | 'route' | 'port' | 'network key' | 'noise' | 'allow-list' | 'protocol' | 'model'

/** Result of a step of the diagnosis. */
export interface Step {
  readonly name: StepName
  readonly ok: boolean
  readonly detail: string
  /** How to fix a failed step. */
  readonly remedy?: string
}

/** Records a passed step; only the first call per step counts. */
type Pass = (name: StepName, detail: string) => void

class StepFailedError extends Error {
  constructor(
    readonly step: StepName,
    message: string,
    readonly remedy: string
  ) {
    super(message)
  }
}

/**
 * Checks name, route and port of the first TCP endpoint of an address (of the relay, if there is one).
 * @returns what listens there, if it is the peer itself in plain TCP
 * @throws StepFailedError
 */
async function reach(address: string, stepMs: number, pass: Pass): Promise<PortProbe | undefined> {
  const { host, port, isName, isPlain } = tcpEndOf(parseAddress(address))
  const ip = isName ? await resolve(host) : host
  pass('name', isName ? `${host} resolves to ${ip}` : `${host} is an IP address`)
  await checkRoute(ip, port)
  pass('route', `there is a route to ${ip}`)
  try {
    const probe = await probePort(ip, port, stepMs)
    pass('port', `port ${port} accepts connections`)
    return isPlain ? probe : undefined
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH') throw noRoute(ip, code)
    if (code === 'ECONNREFUSED') {
      throw new StepFailedError(
        'port',
        `connection to ${ip} port ${port} refused`,
        'start the peer, or correct the port'
      )
    }
    const remedy = 'open the port in all firewalls on the route, and forward it in a router in front of the peer'
    throw new StepFailedError('port', `no answer from ${ip} port ${port} (${code})`, remedy)
  }
}

async function resolve(host: string): Promise<string> {
  try {
    return (await lookup(host)).address
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StepFailedError(
      'name',
      `${host} cannot be resolved (${code})`,
      'check its spelling and the DNS configuration of this machine'
    )
  }
}

/** Connecting a datagram socket consults the routing table without sending anything. */
async function checkRoute(ip: string, port: number): Promise<void> {
  const socket = createSocket(isIPv6(ip) ? 'udp6' : 'udp4')
  try {
    await new Promise<void>((done, fail) => {
      socket.once('error', fail).once('connect', done)
      socket.connect(port, ip)
    })
  } catch (error) {
    throw noRoute(ip, (error as NodeJS.ErrnoException).code)
  } finally {
    socket.close()
  }
}

function noRoute(ip: string, code: string | undefined): StepFailedError {
  const remedy = 'connect this machine to that network (cable, VPN, IPv6), or use an address in one of its networks'
  return new StepFailedError('route', `no route to ${ip} (${code})`, remedy)
}

interface DiagnosisOptions {
  /** Fields to compare with the peer's; empty if there is no model. */
  readonly hello: Hello
  /** Whether `network` has a network key. */
  readonly isKeyed: boolean
  /** Timeout of a step in ms. @default 5000 */
  readonly stepMs?: number
}

/**
 * @param network network used for dialling; it need not listen
 * @returns the steps up to the first failure
 * @throws MalformedAddressError
 */
export async function diagnose(network: Network, address: string, options: DiagnosisOptions): Promise<Step[]> {
  const steps: Step[] = []
  const pass: Pass = (name, detail) => {
    if (!steps.some(step => step.name === name)) steps.push({ name, ok: true, detail })
  }
  parseAddress(address)
  try {
    const probe = await reach(address, options.stepMs ?? 5000, pass)
    checkKeys(probe, options.isKeyed)
    await checkProtocols(network, address, options, pass)
  } catch (error) {
    if (!(error instanceof StepFailedError)) throw error
    const { step, message, remedy } = error
    steps.push({ name: step, ok: false, detail: message, remedy })
  }
  return steps
}

function checkKeys(probe: PortProbe | undefined, isKeyed: boolean): void {
  if (probe?.kind === 'foreign') {
    const remedy = 'pass the port that the peer prints at start, not its HTTP port'
    throw new StepFailedError('noise', `a different service listens there; it sends "${probe.banner}"`, remedy)
  }
  if (probe?.kind === 'keyed' && !isKeyed) {
    throw new StepFailedError(
      'network key',
      'the peer has a network key, this end has none',
      'pass its --network-key FILE'
    )
  }
  if (probe?.kind === 'open' && isKeyed) {
    const remedy = 'start the peer with the same --network-key FILE, or omit the option here'
    throw new StepFailedError('network key', 'the peer has no network key, this end has one', remedy)
  }
}

/** The steps of libp2p and of admb's own protocols. */
async function checkProtocols(
  network: Network,
  address: string,
  { hello, isKeyed, stepMs = 5000 }: DiagnosisOptions,
  pass: Pass
) {
  const passKey = () => pass('network key', isKeyed ? 'both ends have the same key' : 'neither end has one')
  const passNoise = () => {
    passKey()
    pass('noise', 'the connection is encrypted and the peer has proved its id')
  }
  const theirs = await mapErrors(network.id, { passKey, passNoise, pass }, async () => {
    const signal = AbortSignal.timeout(3 * stepMs)
    await network.connect({ addresses: [address] }, signal)
    passNoise()
    return network.exchangeHello({ addresses: [address] }, hello, signal)
  })
  pass('allow-list', `it accepts sessions from ${network.id}`)
  if (theirs.protocol !== hello.protocol) {
    const detail = `it has version ${theirs.protocol}, this program ${hello.protocol}`
    throw new StepFailedError('protocol', detail, 'run the same version of admb on both')
  }
  pass('protocol', `both have version ${hello.protocol}`)
  pass('model', compareHellos(hello, theirs))
}

/** Runs `run` and maps its errors to the failed step, after passing the steps before it. */
async function mapErrors<T>(
  self: string,
  { passKey, passNoise, pass }: { passKey(): void; passNoise(): void; pass: Pass },
  run: () => Promise<T>
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const { message } = error as Error
    if (error instanceof errors.NetworkKeyMismatchError) {
      throw new StepFailedError(
        'network key',
        'the network keys differ',
        'pass the same --network-key FILE to both ends'
      )
    }
    if (error instanceof errors.UnexpectedPeerError) {
      passKey()
      throw new StepFailedError('noise', 'another peer listens there', 'copy the address that the peer prints at start')
    }
    const isRefused = error instanceof errors.PeerRefusedError || error instanceof errors.SessionClosedError
    if (isRefused) {
      passNoise()
      throw new StepFailedError(
        'allow-list',
        'it refused this peer',
        `add ${self} to its allow-list (--dir DIR uses the identity of that directory), or wait if it is full`
      )
    }
    if (error instanceof errors.NotAdmbPeerError || error instanceof errors.ProtocolViolationError) {
      pass('allow-list', 'it accepted the connection')
      throw new StepFailedError('protocol', message, 'run the same version of admb on both')
    }
    throw new StepFailedError('noise', message, 'check the log of the peer')
  }
}

function compareHellos(ours: Hello, theirs: Hello): string {
  const about = theirs.fields
    .filter(([, value]) => value !== '')
    .slice(0, 3)
    .map(([field, value]) => `${field} ${value}`)
  if (ours.fields.length === 0) return `it learns ${about.join(', ')}; pass --dir DIR to compare it with that model`
  const their = new Map(theirs.fields)
  const our = new Map(ours.fields)
  for (const field of [...our.keys(), ...their.keys()]) {
    if (their.get(field) === our.get(field)) continue
    const detail = `it has ${field} ${their.get(field) ?? '(none)'}, the one in --dir ${our.get(field) ?? '(none)'}`
    throw new StepFailedError('model', detail, `start both with the same --${field}`)
  }
  return `both learn ${about.join(', ')}`
}
