/**
 * One peer, put together: identity and state from the store, libp2p and the overlay on this thread, the learner on its
 * own. This thread is never blocked, and the learner never waits for it.
 */
import { EventEmitter } from 'node:events'
import { decodeHead, encodeHead, maximumFrameBytes, type PredictorName } from '../admb/index.js'
import {
  createNetwork,
  decodeIdentityKey,
  encodeIdentityKey,
  generateIdentityKey,
  type IdentityKey,
  type Log,
  type Network
} from '../network/index.js'
import { Store } from '../storage/index.js'
import type { StreamOptions } from '../streams/index.js'
import { agreementFields, type LearningSpec, learningParts, PROTOCOL_VERSION, specText } from './agreement.js'
import { Bootstrap } from './bootstrap.js'
import { Edges } from './edges.js'
import { LearnerHandle } from './learner-handle.js'
import type { FromLearner, InputAnswer, InputRequest, LearnerStatus, PredictWith, Progress } from './thread-messages.js'

export interface PeerOptions {
  readonly spec: LearningSpec
  /** What to learn from; undefined: only what is posted to the peer. */
  readonly stream?: StreamOptions
  /** Inputs a second. Default: as fast as they come. */
  readonly rate?: number
  /** T in milliseconds. Default 100. */
  readonly period?: number
  /** S in periods. Default `DEFAULT_CARRY`. */
  readonly carry?: number
  /** Default 'average'. */
  readonly predictWith?: PredictWith
  /** State directory. Default: none, and everything is forgotten at the end. */
  readonly dir?: string
  /** Multiaddresses to listen on. Default: all interfaces, a free port. */
  readonly listen?: readonly string[]
  /** Multiaddresses of peers to connect to. */
  readonly peers?: readonly string[]
  /** Most tree neighbours. Default 4. */
  readonly degree?: number
  readonly mdns?: boolean
  /** Content of a network key file. */
  readonly networkKey?: Uint8Array
  /** Ids of the only peers to talk to. */
  readonly allow?: ReadonlySet<string>
  /** Identity for a peer without a state directory, or for a new one. Default: a new one. */
  readonly identity?: IdentityKey
  readonly log: Log
}

/**
 * S when nothing else is asked for, in periods. Measured (`docs/benchmarks.md`): from a little above the tree's diameter
 * on, more changes nothing.
 */
export const DEFAULT_CARRY = 16
/** Above that many parameters segments of sums would fill the memory, and gradients are not carried over by default. */
const CARRY_PARAMETERS = 2_000_000

interface Traffic {
  messages: number
  bytes: number
}

/** What a peer says of itself. Losses in nats; see `docs/protocol.md` for the rest. */
export interface PeerStatus {
  readonly id: string
  readonly inputs: number
  readonly updates: number
  readonly averageLoss: number
  readonly accuracy?: number
  readonly neighbours: readonly string[]
  readonly predictor: PredictorName
  readonly adopted: number
  readonly discarded: number
  readonly skipped: number
  /** Whether the stream has come to its end. */
  readonly ended: boolean
  readonly received: Readonly<Traffic>
  readonly sent: Readonly<Traffic>
}

/** Events: `status` (PeerStatus), `edge` (neighbours changed), `failed` (Error: the peer has stopped itself). */
export class Peer extends EventEmitter {
  readonly #options: PeerOptions
  readonly #store: Store | undefined
  readonly #network: Network
  readonly #edges: Edges
  readonly #bootstrap: Bootstrap
  readonly #learner: LearnerHandle
  readonly #sent: Traffic = { messages: 0, bytes: 0 }
  readonly #received: Traffic = { messages: 0, bytes: 0 }
  readonly #consumed = new Map<number, () => void>()
  #status: LearnerStatus
  #storing: Promise<void> = Promise.resolve()
  #stopping: Promise<void> | undefined

  /**
   * Starts a peer; when this resolves it listens and learns.
   * @throws errors of the store and the network, each one line that says what to do
   */
  static async start(options: PeerOptions): Promise<Peer> {
    const store = options.dir === undefined ? undefined : await Store.open(options.dir)
    try {
      const key = await identityOf(store, options.identity)
      const begun = await store?.begin(specText(options.spec))
      const network = await openNetwork(options, key)
      return new Peer(options, store, network, begun ?? { incarnation: 1, checkpoint: undefined })
    } catch (error) {
      await store?.close()
      throw error
    }
  }

  private constructor(
    options: PeerOptions,
    store: Store | undefined,
    network: Network,
    begun: Awaited<ReturnType<Store['begin']>>
  ) {
    super()
    this.#options = options
    this.#store = store
    this.#network = network
    const { spec, stream, rate, period = 100, predictWith = 'average', degree = 4, log } = options
    const { learner } = learningParts(spec)
    const parameters = learner.layout.blocks.reduce((sum, block) => sum + block.length, 0)
    const { incarnation, checkpoint } = begun
    const progress = checkpoint?.progress as Progress | undefined
    this.#status = {
      progress: progress ?? { inputs: 0, loss: 0, hits: learner.classifies ? 0 : undefined },
      predictor: { updates: 0, origin: '', incarnation: 0, digest: '' },
      adopted: 0,
      discarded: 0,
      skipped: 0,
      ended: false
    }
    this.#learner = new LearnerHandle(
      {
        spec,
        self: network.id,
        incarnation,
        period,
        carry: options.carry ?? (parameters > CARRY_PARAMETERS ? 0 : DEFAULT_CARRY),
        predictWith,
        stream,
        rate,
        saved: checkpoint?.predictor,
        progress,
        durable: store !== undefined
      },
      message => this.#hear(message),
      error => this.#fail(error)
    )
    this.#edges = new Edges({
      network,
      degree,
      log,
      handlers: {
        up: (edge, peer) => {
          log('info', `linked with ${peer}`, { peer })
          this.#learner.post({ kind: 'connect', edge, peer })
          this.emit('edge')
        },
        down: (edge, peer, reason) => {
          log('info', `link with ${peer} ended: ${reason}`, { peer, reason })
          this.#learner.post({ kind: 'disconnect', edge })
          this.#release(edge)
          this.emit('edge')
        },
        frame: (edge, bytes) => this.#take(edge, bytes)
      }
    })
    network.onPeer(event => {
      if (event.kind !== 'lost') this.#edges.candidate(event)
    })
    network.onGossip((topic, from, bytes) => this.#gossip(topic, from, bytes))
    network.onFetch(() => this.#learner.save())
    this.#bootstrap = new Bootstrap(network, options.peers ?? [], log)
  }

  get id(): string {
    return this.#network.id
  }

  /** Lines that another peer can paste after `--peer`. */
  get addresses(): readonly string[] {
    return this.#network.addresses
  }

  status(): PeerStatus {
    const { progress, predictor, adopted, discarded, skipped, ended } = this.#status
    const { inputs, loss, hits } = progress
    return {
      id: this.id,
      inputs,
      updates: predictor.updates,
      averageLoss: inputs === 0 ? 0 : loss / inputs,
      ...(hits === undefined ? {} : { accuracy: inputs === 0 ? 0 : hits / inputs }),
      neighbours: this.#edges.neighbours,
      predictor,
      adopted,
      discarded,
      skipped,
      ended,
      received: { ...this.#received },
      sent: { ...this.#sent }
    }
  }

  /** Predicts inputs, or predicts and then learns from them. Throws RequestError for bad input. */
  request(request: InputRequest): Promise<InputAnswer> {
    return this.#learner.request(request)
  }

  /** The predictor held now, as stand-alone bytes (`decodeSaved`). */
  save(): Promise<Uint8Array> {
    return this.#learner.save()
  }

  /** Cuts peers off, connections included, as a partition would; undefined heals it. For demonstrations and tests. */
  block(peers: ReadonlySet<string> | undefined): void {
    this.#network.block(peers)
    if (peers === undefined) this.#bootstrap.retry()
  }

  /** A last checkpoint, a goodbye to the neighbours. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown()
    return this.#stopping
  }

  async #shutDown(): Promise<void> {
    this.#bootstrap.stop()
    await this.#learner.stop()
    this.#edges.stop()
    await this.#network.stop()
    await this.#storing
    await this.#store?.close()
  }

  #fail(error: Error): void {
    if (this.#stopping) return
    void this.stop().finally(() => this.emit('failed', error))
  }

  #hear(message: FromLearner): void {
    switch (message.kind) {
      case 'frame':
        this.#send(message.edge, message.bytes)
        break
      case 'consumed':
        this.#release(message.edge)
        break
      case 'refused':
        this.#edges.penalise(message.edge, message.reason)
        break
      case 'status':
        this.#status = message.status
        this.emit('status', this.status())
        break
      case 'checkpoint':
        this.#storing = this.#keep(message.predictor, message.progress)
        break
      case 'head':
        this.#network.publish('head', encodeHead({ name: message.name, addresses: this.addresses }))
        break
      case 'fetch':
        void this.#fetch(message.name, message.from)
        break
      case 'malformed':
        this.#options.log('warn', message.reason, {})
        break
      case 'saved':
      case 'answer':
      case 'failed-request':
      case 'failed':
      case 'stopped':
        break
      default:
        message satisfies never
    }
  }

  #send(edge: number, bytes: Uint8Array): void {
    this.#sent.messages++
    this.#sent.bytes += bytes.length
    this.#edges.send(edge, bytes).then(
      () => this.#learner.post({ kind: 'writable', edge }),
      // The session has ended, of which the overlay tells.
      () => undefined
    )
  }

  #take(edge: number, bytes: Uint8Array): Promise<void> {
    this.#received.messages++
    this.#received.bytes += bytes.length
    return new Promise(resolve => {
      this.#consumed.set(edge, resolve)
      this.#learner.post({ kind: 'frame', edge, bytes }, [bytes.buffer as ArrayBuffer])
    })
  }

  #release(edge: number): void {
    this.#consumed.get(edge)?.()
    this.#consumed.delete(edge)
  }

  async #keep(predictor: Uint8Array, progress: Progress): Promise<void> {
    try {
      await this.#store?.save({ predictor, progress })
      this.#learner.post({ kind: 'stored' })
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #gossip(topic: 'beacon' | 'head', from: string, bytes: Uint8Array): void {
    try {
      if (topic === 'beacon') this.#edges.heard(from, bytes)
      else this.#hearHead(from, bytes)
    } catch (error) {
      const reason = `unreadable gossip on ${topic}: ${(error as Error).message}`
      this.#network.penalise(from, reason)
    }
  }

  #hearHead(from: string, bytes: Uint8Array): void {
    const { name, addresses } = decodeHead(bytes)
    this.#edges.candidate({ id: from, addresses })
    this.#learner.post({ kind: 'head', name, from })
  }

  async #fetch(name: PredictorName, from: string): Promise<void> {
    try {
      const target = this.#network.peers.find(peer => peer.id === from) ?? { id: from, addresses: [] }
      const bytes = await this.#network.fetch(
        target,
        new TextEncoder().encode('predictor'),
        AbortSignal.timeout(30_000)
      )
      this.#learner.post({ kind: 'fetched', bytes, from }, [bytes.buffer as ArrayBuffer])
    } catch (error) {
      const reason = `fetching the predictor with ${name.updates} updates failed: ${(error as Error).message}`
      this.#options.log('debug', reason, { peer: from })
    }
  }
}

async function identityOf(store: Store | undefined, given: IdentityKey | undefined): Promise<IdentityKey> {
  if (store?.identity) return decodeIdentityKey(store.identity)
  const key = given ?? (await generateIdentityKey())
  await store?.create(encodeIdentityKey(key))
  return key
}

function openNetwork(options: PeerOptions, privateKey: IdentityKey): Promise<Network> {
  const { learner, recipe } = learningParts(options.spec)
  const shapes = { parameters: learner.layout, state: recipe.rule.stateLayout(learner.layout) }
  return createNetwork({
    privateKey,
    listen: options.listen ?? ['/ip4/0.0.0.0/tcp/0'],
    networkKey: options.networkKey,
    allow: options.allow,
    hello: { protocol: PROTOCOL_VERSION, fields: agreementFields(options.spec) },
    maxFrameBytes: maximumFrameBytes(shapes),
    mdns: options.mdns,
    log: options.log
  })
}
