/**
 * Why a peer cannot be reached, found step by step in the order of the wire: each step's success is what the next one stands on,
 * so the first that fails is the one to mend.
 */
import { parseAddress } from './addresses.js'
import { type Pass, type Step, StepFailedError } from './diagnosis-step.js'
import * as errors from './errors.js'
import type { Hello } from './hello.js'
import type { Network } from './network.js'
import type { PortProbe } from './port-probe.js'
import { reach } from './reach.js'

export interface DiagnosisOptions {
  /** What must agree; its fields are empty where no model is at hand. */
  readonly hello: Hello
  /** Whether `network` has a network key. */
  readonly isKeyed: boolean
  /** How long a step may take, in milliseconds. Default 5000. */
  readonly stepMs?: number
}

/**
 * @param network one that dials; it need not listen
 * @returns the steps up to the first that fails
 * @throws MalformedAddressError
 */
export async function diagnose(network: Network, address: string, options: DiagnosisOptions): Promise<Step[]> {
  const steps: Step[] = []
  const pass: Pass = (name, detail) => {
    if (!steps.some(step => step.name === name)) steps.push({ name, ok: true, detail })
  }
  parseAddress(address)
  try {
    const answerer = await reach(address, options.stepMs ?? 5000, pass)
    checkKeys(answerer, options.isKeyed)
    await checkProtocols(network, address, options, pass)
  } catch (error) {
    if (!(error instanceof StepFailedError)) throw error
    const { step, message, remedy } = error
    steps.push({ name: step, ok: false, detail: message, remedy })
  }
  return steps
}

function checkKeys(answerer: PortProbe | undefined, isKeyed: boolean): void {
  if (answerer?.kind === 'foreign') {
    const remedy = 'give the port that the peer prints at start, not that of its HTTP'
    throw new StepFailedError('noise', `what listens there is no peer: it says "${answerer.banner}"`, remedy)
  }
  if (answerer?.kind === 'keyed' && !isKeyed) {
    throw new StepFailedError('network key', 'the peer has a network key, this end none', 'give its --network-key FILE')
  }
  if (answerer?.kind === 'open' && isKeyed) {
    const remedy = 'start the peer with the same --network-key FILE, or leave it out here'
    throw new StepFailedError('network key', 'the peer has no network key, this end one', remedy)
  }
}

/** The steps on which libp2p and this program's own protocols stand. */
async function checkProtocols(
  network: Network,
  address: string,
  { hello, isKeyed, stepMs = 5000 }: DiagnosisOptions,
  pass: Pass
) {
  const passKey = () => pass('network key', isKeyed ? 'it is the same' : 'neither end has one')
  const passNoise = () => {
    passKey()
    pass('noise', 'the connection is encrypted, and the peer has proved its id')
  }
  const theirs = await mapErrors(network.id, { passKey, passNoise, pass }, async () => {
    const signal = AbortSignal.timeout(3 * stepMs)
    await network.connect({ addresses: [address] }, signal)
    passNoise()
    return network.exchangeHello({ addresses: [address] }, hello, signal)
  })
  pass('allow-list', `it takes sessions of ${network.id}`)
  if (theirs.protocol !== hello.protocol) {
    const detail = `it speaks version ${theirs.protocol}, this program ${hello.protocol}`
    throw new StepFailedError('protocol', detail, 'run the same version of admb on both')
  }
  pass('protocol', `both speak version ${hello.protocol}`)
  pass('model', compareHellos(hello, theirs))
}

/** Runs it, and tells at which step it failed, after passing those before. */
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
      throw new StepFailedError('network key', 'the network keys differ', 'give both ends the same --network-key FILE')
    }
    if (error instanceof errors.UnexpectedPeerError) {
      passKey()
      throw new StepFailedError('noise', 'another peer answers there', 'copy the line that the peer prints at start')
    }
    const isRefused = error instanceof errors.PeerRefusedError || error instanceof errors.SessionClosedError
    if (isRefused) {
      passNoise()
      throw new StepFailedError(
        'allow-list',
        'it refused this peer',
        `have ${self} put on its allow-list (--dir DIR asks as the peer of that directory), or wait if it is full`
      )
    }
    if (error instanceof errors.NotAdmbPeerError || error instanceof errors.ProtocolViolationError) {
      pass('allow-list', 'it keeps the connection')
      throw new StepFailedError('protocol', message, 'run the same version of admb on both')
    }
    throw new StepFailedError('noise', message, 'look into the log of the peer')
  }
}

function compareHellos(ours: Hello, theirs: Hello): string {
  const about = theirs.fields
    .filter(([, value]) => value !== '')
    .slice(0, 3)
    .map(([field, value]) => `${field} ${value}`)
  if (ours.fields.length === 0) return `it learns ${about.join(', ')}; give --dir to compare it with a model of yours`
  const their = new Map(theirs.fields)
  const our = new Map(ours.fields)
  for (const field of [...our.keys(), ...their.keys()]) {
    if (their.get(field) === our.get(field)) continue
    const detail = `it has ${field} ${their.get(field) ?? '(none)'}, the one in --dir ${our.get(field) ?? '(none)'}`
    throw new StepFailedError('model', detail, `start both with the same --${field}`)
  }
  return `both learn ${about.join(', ')}`
}
