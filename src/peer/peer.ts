/**
 * One peer, put together: identity and state from the store, libp2p and the overlay on this thread, the learner on its
 * own. This thread is never blocked, and the learner never waits for it.
 */
import { EventEmitter } from 'node:events'
import { decodeHead, encodeHead, type PredictorId } from '../admb/index.js'
import { OptionError } from '../learner/index.js'
import type { Network, Topic } from '../network/index.js'
import { Store } from '../storage/index.js'
import { specText } from '../task/learning-spec.js'
import { loadPlugins } from '../task/plugins.js'
import { NAME_PATTERN, type NetworkStatus, type NetworkView } from '../view/index.js'
import { Bootstrap } from './bootstrap.js'
import { type Download, downloadOf } from './download.js'
import { Edges } from './edges.js'
import { Frames } from './frames.js'
import { LearnerHandle } from './learner-handle.js'
import { DEFAULT_DEGREE, type PeerOptions, type PeerStatus } from './options.js'
import { identityOf, learnerInit, openNetwork } from './startup.js'
import { StatusPublisher } from './status-publisher.js'
import type {
  FromLearner,
  InputAnswer,
  InputRequest,
  LearnerInit,
  LearnerStatus,
  SavedProgress,
  StoredPredictor
} from './thread-messages.js'

/** How long a peer may take to give its predictor, in milliseconds. */
const FETCH_TIMEOUT_MS = 30_000

/** Longest silence of a learner that is taken to be at work, in milliseconds: a status is due four times a second. */
const SILENCE_MS = 15_000

/**
 * Events: `status` (PeerStatus), `published` (NetworkStatus: what all others are told), `neighbour` (NeighbourChange), `failed`
 * (Error: the peer has stopped itself).
 */
export class Peer extends EventEmitter {
  readonly #options: PeerOptions
  readonly #incarnation: number
  readonly #store: Store | undefined
  readonly #network: Network
  readonly #edges: Edges
  readonly #bootstrap: Bootstrap
  readonly #learner: LearnerHandle
  readonly #frames: Frames
  readonly #publisher: StatusPublisher
  #status: LearnerStatus
  /** When the learner thread gave its last status. */
  #heardAt = performance.now()
  #storing: Promise<void> = Promise.resolve()
  #stopping: Promise<void> | undefined

  /**
   * Starts a peer; when this resolves it listens, holds what it stored, and learns.
   * @throws OptionError for a name that cannot be shown; errors of the store, the network and the stream, each one line that says what to do
   */
  static async start(options: PeerOptions): Promise<Peer> {
    // Others would refuse every status with it.
    if (options.name !== undefined && !NAME_PATTERN.test(options.name)) {
      throw new OptionError('the name must have 1 to 40 printable characters')
    }
    await loadPlugins(options.plugins ?? [])
    const store = options.dir === undefined ? undefined : await Store.open(options.dir)
    let network: Network | undefined
    let learner: LearnerHandle | undefined
    try {
      const key = await identityOf(store, options.identity)
      // Listening comes first: a port in use costs no incarnation.
      network = await openNetwork(options, key)
      const begun = await store?.begin(specText(options.spec))
      const init = await learnerInit(options, network.id, begun, store)
      learner = new LearnerHandle(init)
      return new Peer(options, store, network, learner, init, await learner.ready)
    } catch (error) {
      await learner?.stop()
      await network?.stop()
      await store?.close()
      throw error
    }
  }

  private constructor(
    options: PeerOptions,
    store: Store | undefined,
    network: Network,
    learner: LearnerHandle,
    { incarnation }: LearnerInit,
    status: LearnerStatus
  ) {
    super()
    this.#options = options
    this.#incarnation = incarnation
    this.#store = store
    this.#network = network
    this.#learner = learner
    this.#frames = new Frames(learner)
    this.#status = status
    const { log, degree = DEFAULT_DEGREE } = options
    this.#edges = new Edges({
      network,
      degree,
      log,
      handlers: {
        up: (edge, peer) => {
          log('info', `linked with ${peer}`, { peer })
          learner.post({ kind: 'connect', edge, peer })
          this.emit('neighbour', { peer, isLinked: true })
        },
        down: (edge, peer, reason) => {
          log('info', `link with ${peer} ended: ${reason}`, { peer, reason })
          learner.post({ kind: 'disconnect', edge })
          this.#frames.consumed(edge)
          this.emit('neighbour', { peer, isLinked: false, reason })
        },
        refused: (peer, reason) => this.#publisher.refused(peer, reason),
        part: (edge, bytes) => this.#frames.takePart(edge, bytes),
        frame: (edge, bytes) => this.#frames.take(edge, bytes)
      }
    })
    this.#publisher = new StatusPublisher({
      network,
      name: options.name,
      status: () => this.status(),
      onPublished: (told: NetworkStatus) => this.emit('published', told)
    })
    network.onPeer(event => {
      if (event.kind !== 'lost') this.#edges.candidate(event)
    })
    network.onGossip((topic, from, bytes) => this.#gossip(topic, from, bytes))
    network.onRefused((peer, reason) => this.#publisher.refused(peer, reason))
    network.onFetch(() => learner.save())
    this.#bootstrap = new Bootstrap(network, options.peers ?? [], log)
    learner.listen(
      message => this.#hear(message),
      error => this.#fail(error)
    )
  }

  get id(): string {
    return this.#network.id
  }

  /** Lines that another peer can paste after `--peer`. */
  get addresses(): readonly string[] {
    return this.#network.addresses
  }

  /** What this peer knows of the whole network. */
  get view(): NetworkView {
    return this.#publisher.view
  }

  status(): PeerStatus {
    const { progress, predictor, adopted, discarded, skipped, ended } = this.#status
    const { inputs, loss, hits } = progress
    return {
      id: this.id,
      incarnation: this.#incarnation,
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
      received: { ...this.#frames.received },
      sent: { ...this.#frames.sent }
    }
  }

  /**
   * Predicts inputs, or predicts and then learns from them.
   * @throws RequestError for bad input, UnavailableError when too many requests wait
   */
  request(request: InputRequest): Promise<InputAnswer> {
    return this.#learner.request(request)
  }

  /** The predictor held now, as stand-alone bytes (`decodeSaved`). */
  save(): Promise<Uint8Array> {
    return this.#learner.save()
  }

  /** The predictor that serves predictions, for other programs. */
  async download(): Promise<Download> {
    return downloadOf(this.#options, await this.#learner.serving())
  }

  /** Why nobody should send inputs now; undefined if the learner runs and has a predictor that was learned. */
  get unreadiness(): string | undefined {
    if (this.#stopping) return 'the peer stops'
    const silence = performance.now() - this.#heardAt
    if (silence > SILENCE_MS) return `the learner has said nothing for ${Math.round(silence / 1000)} s`
    if (this.#status.predictor.updates > 0) return undefined
    return `no predictor yet: an update takes ${this.#options.spec.batch} inputs`
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
    this.#publisher.stop()
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
        this.#frames.send(this.#edges, message.edge, message.bytes)
        break
      case 'consumed':
        this.#frames.consumed(message.edge)
        break
      case 'refused':
        this.#edges.penalise(message.edge, message.reason)
        break
      case 'status':
        this.#status = message.status
        this.#publisher.addPredictors(message.trail)
        this.#heardAt = performance.now()
        this.emit('status', this.status())
        break
      case 'checkpoint':
        this.#storing = this.#keep(message, message.progress)
        break
      case 'head':
        this.#network.publish('head', encodeHead({ id: message.name, addresses: this.addresses }))
        break
      case 'fetch':
        void this.#fetch(message.name, message.from)
        break
      case 'warning':
        this.#options.log('warn', message.reason, {})
        break
      case 'saved':
      case 'served':
      case 'answer':
      case 'failed-request':
      case 'failed':
      case 'stopped':
        // The handle's own affair.
        break
      default:
        message satisfies never
    }
  }

  /** A peer that cannot store must not go on: it would say what it cannot remember. */
  async #keep({ head, blocks }: StoredPredictor, progress: SavedProgress): Promise<void> {
    try {
      await this.#store?.save({ head, blocks, progress })
      this.#learner.post({ kind: 'stored' })
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #gossip(topic: Topic, from: string, bytes: Uint8Array): void {
    try {
      if (topic === 'beacon') this.#edges.heard(from, bytes)
      else if (topic === 'head') this.#hearHead(from, bytes)
      else this.#publisher.receive(from, bytes)
    } catch (error) {
      const reason = `unreadable gossip on ${topic}: ${(error as Error).message}`
      this.#network.ban(from, reason)
    }
  }

  #hearHead(from: string, bytes: Uint8Array): void {
    const { id, addresses } = decodeHead(bytes)
    this.#edges.candidate({ id: from, addresses })
    this.#learner.post({ kind: 'head', name: id, from })
  }

  async #fetch(id: PredictorId, from: string): Promise<void> {
    try {
      const target = this.#network.peers.find(peer => peer.id === from) ?? { id: from, addresses: [] }
      const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS)
      const bytes = await this.#network.fetch(target, new TextEncoder().encode('predictor'), signal)
      this.#learner.post({ kind: 'fetched', bytes, from }, [bytes.buffer as ArrayBuffer])
    } catch (error) {
      const reason = `fetching the predictor with ${id.updates} updates failed: ${(error as Error).message}`
      this.#options.log('debug', reason, { peer: from })
    }
  }
}
