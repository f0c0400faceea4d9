/**
 * Diagnosis of a failed connection, step by step in protocol order. Each step requires the previous one, so the first step that
 * fails is the one to fix.
 */
import { parseAddress } from './addresses.js'
import * as errors from './errors.js'
import type { Hello } from './hello.js'
import type { Network } from './network.js'
import type { PortProbe } from './port-probe.js'
import { type Pass, reach, type Step, StepFailedError } from './reach.js'

export interface DiagnosisOptions {
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
