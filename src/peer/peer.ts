/**
 * One peer: identity and state from the store, libp2p and the overlay on this thread, and the learner on its own thread. This
 * thread is never blocked, and the learner never waits for it.
 */
import { EventEmitter } from 'node:events'
import { loadPlugins, openDevices } from '#runtime'
import type { Schema } from '../data/index.js'
import { createSigner, dialled, type IdentityKey, type Membership, type Network, type Topic } from '../network/index.js'
import type { WebSocketUpgrades } from '../network/types.js'
import { hasLayers, LayeredStateError, Store } from '../storage/index.js'
import { schemaOf } from '../task/learning-spec.js'
import { specText } from '../task/spec-text.js'
import type { FoundPeer, NetworkStatus, NetworkView, Subtree } from '../view/index.js'
import type { InputAnswer } from './answers.js'
import { Bootstrap } from './bootstrap.js'
import { CheckpointWriter } from './checkpoint-writer.js'
import { DiscardWatch, discardAdvice } from './discard-watch.js'
import type { Download } from './downloads.js'
import { Edges } from './edges.js'
import { OtherNetworkError } from './errors.js'
import { FrameTransfer } from './frame-transfer.js'
import { convertSums } from './integer-sums.js'
import { type JoinOffer, joinOffer } from './join-offer.js'
import { JoinWatch, specAnswer } from './joining.js'
import { JournalWriter } from './journal-writer.js'
import { LearnerHandle } from './learner-handle.js'
import { LearnerWatch } from './learner-watch.js'
import { MemberExchange, openMembership } from './members.js'
import { checkPeerOptions, DEFAULT_DEGREE, joins, type PeerOptions } from './options.js'
import { ProgramLink } from './peer-program.js'
import { peerStatus } from './peer-status.js'
import { PredictorExchange } from './predictor-exchange.js'
import { RecentAnswers } from './recent-answers.js'
import { Contacts, ownContacts, SpareConnections } from './spare-connections.js'
import { identityOf, learnerInit, networkIdOf, openNetwork, started } from './startup.js'
import type { PeerStatus } from './status.js'
import { StatusPublisher } from './status-publisher.js'
import type { InputRequest, LearnerStatus, ThreadInit, ToPeer } from './thread-messages.js'
import { quarantineProblem, refusalProblem } from './trust.js'
import { DriftAlerts, MasterWatch } from './warnings.js'

/**
 * Events: `status` (PeerStatus), `report` (NetworkStatus, about once a second), `neighbour` (NeighbourChange), `failed`
 * (Error, after which the peer has stopped).
 */
export class Peer extends EventEmitter {
  readonly #options: PeerOptions
  readonly #networkId: string | undefined
  readonly #run: { readonly incarnation: number; readonly nonce: number }
  readonly #store: Store | undefined
  readonly #journal: JournalWriter | undefined
  readonly #checkpoints: CheckpointWriter | undefined
  readonly #network: Network
  readonly #edges: Edges
  readonly #bootstrap: Bootstrap
  /** Whether inputs of requests were learned, which cannot be read again. */
  #takesRequests = false
  /** Undefined for a peer that joins no network. */
  readonly #joining: JoinWatch | undefined
  readonly #learner: LearnerHandle
  readonly #frames: FrameTransfer
  readonly #publisher: StatusPublisher
  readonly #alerts: DriftAlerts
  #status: LearnerStatus
  readonly #learnerWatch: LearnerWatch
  readonly #discards: DiscardWatch
  /** Undefined for ADMB. */
  readonly #masterWatch: MasterWatch | undefined
  /** Undefined for models that this process computes. */
  readonly #program: ProgramLink | undefined
  readonly #predictors: PredictorExchange
  readonly #members: MemberExchange | undefined
  readonly #contacts = new Contacts()
  readonly #spares: SpareConnections | undefined
  readonly #answers = new RecentAnswers()
  #stopping: Promise<void> | undefined

  /**
   * Starts a peer. When this resolves, the peer listens, has restored its state, and learns.
   * @example
   * const peer = await Peer.start({
   *   spec: {
   *     model: 'logistic',
   *     dimension: 2,
   *     rule: { name: 'adagrad' },
   *     averaging: { name: 'tail' },
   *     batch: 32,
   *     features: { constant: false, scale: 'none', classNames: ['no', 'yes'] }
   *   },
   *   listen: ['/ip4/127.0.0.1/tcp/0'],
   *   log: (level, message) => console.error(level, message)
   * })
   * await peer.stop()
   * @throws OptionError for an invalid name or STUN server, or an option that is unknown or of another type; errors of the store, the
   *   network and the stream
   */
  static async start(options: PeerOptions): Promise<Peer> {
    checkPeerOptions(options)
    await loadPlugins(options.plugins ?? [])
    const store = options.dir === undefined ? undefined : await Store.open(options.dir)
    let network: Network | undefined
    let learner: LearnerHandle | undefined
    try {
      if (options.dir !== undefined && hasLayers(options.dir)) throw new LayeredStateError(options.dir)
      const key = await identityOf(store, options.identity)
      // Listen before the run starts, so that a port in use does not consume an incarnation.
      const networkId = await networkIdOf(options, store)
      const membership = await openMembership(options, key, networkId, store)
      network = await openNetwork(options, key, networkId, membership)
      if (store && (await convertSums(store, options.dir as string, options.spec))) {
        const { sums = 'exact' } = options.spec
        options.log('info', `the state in ${options.dir} is converted to ${sums} sums`, {})
      }
      const run = await store?.begin(specText(options.spec), networkId)
      const init = await learnerInit(options, network.id, { raw: key.raw, networkId }, run, store)
      learner = new LearnerHandle(init, index => (store as Store).block(index))
      return new Peer(
        options,
        networkId,
        key,
        store,
        network,
        membership,
        learner,
        init,
        await started(learner, init, options.dir)
      )
    } catch (error) {
      await learner?.stop()
      await network?.stop()
      await store?.close()
      throw error
    }
  }

  private constructor(
    options: PeerOptions,
    networkId: string | undefined,
    key: IdentityKey,
    store: Store | undefined,
    network: Network,
    membership: Membership | undefined,
    learner: LearnerHandle,
    { incarnation, nonce, parameters }: ThreadInit,
    status: LearnerStatus
  ) {
    super()
    this.#options = options
    this.#networkId = networkId
    this.#run = { incarnation, nonce }
    this.#store = store
    this.#network = network
    this.#learner = learner
    const onFailure = (error: Error) => this.#fail(error)
    const journal = store && new JournalWriter(store, onFailure)
    this.#journal = journal
    this.#checkpoints = store && journal && new CheckpointWriter({ store, journal, learner, onFailure })
    this.#frames = new FrameTransfer(learner, this.#journal)
    this.#status = status
    const { log, degree = DEFAULT_DEGREE } = options
    this.#edges = new Edges({
      network,
      degree,
      log,
      handlers: {
        up: (edge, peer) => {
          log('info', `linked with ${this.#label(peer)}`, { peer })
          learner.post({ kind: 'connect', edge, peer })
          this.#publisher.exchange.connect(edge, peer)
          this.emit('neighbour', { peer, isLinked: true })
        },
        towardsRoot: edge => {
          if (options.spec.algorithm) learner.post({ kind: 'master', edge })
        },
        down: (edge, peer, reason, hasLeft) => {
          log('info', `link with ${this.#label(peer)} ended: ${reason}`, { peer, reason })
          learner.post({ kind: 'disconnect', edge, hasLeft })
          this.#frames.consumed(edge)
          this.#publisher.exchange.disconnect(edge)
          this.emit('neighbour', { peer, isLinked: false, reason })
        },
        refused: (peer, reason) => this.#publisher.refused(peer, reason),
        status: (edge, bytes) => this.#publisher.exchange.receive(edge, bytes),
        announcement: (edge, bytes) => this.#frames.receiveAnnouncement(edge, bytes),
        fragment: (edge, bytes) => this.#frames.receiveFragment(edge, bytes),
        frame: (edge, bytes) => this.#frames.receive(edge, bytes)
      }
    })
    this.#predictors = new PredictorExchange({
      network,
      edges: this.#edges,
      save: () => this.save(),
      learner,
      store,
      durable: async () => this.#journal?.durable,
      current: () => this.#status.predictor,
      statuses: this,
      log
    })
    this.#learnerWatch = new LearnerWatch(
      {
        silent: seconds => {
          log('error', `the learner has not responded for ${seconds} s: this peer leaves the tree until it does`, {})
          this.#publisher.reportNow()
          this.#edges.leave()
        },
        back: () => {
          log('info', 'the learner responds again: this peer returns to the tree', {})
          this.#edges.rejoin()
        }
      },
      parameters
    )
    this.#masterWatch = options.spec.algorithm && new MasterWatch(network.id, log, id => this.#label(id))
    this.#discards = new DiscardWatch(discardAdvice(options.spec), reason => log('warn', reason, {}))
    this.#publisher = new StatusPublisher({
      network,
      name: options.name,
      status: () => this.status(),
      addresses: ownContacts(network),
      onRun: (from, { addresses = [] }) => this.#contacts.add(from, addresses),
      isPrivate: options.dp !== undefined,
      adaptsBatch: options.spec.batchMax !== undefined,
      sign: createSigner(key),
      send: (edge, bytes) => this.#edges.sendStatus(edge, bytes),
      log,
      onReport: (report: NetworkStatus) => this.emit('report', report)
    })
    this.#alerts = new DriftAlerts(this.#publisher.view, log)
    this.#members = membership && new MemberExchange({ membership, network, log, onFailure })
    this.#spares = dialled.includes('webrtc') ? new SpareConnections(network, this.#contacts, log) : undefined
    network.onFetch(
      async (request, from) =>
        this.#contacts.answer(request, from) ??
        specAnswer(request, options.spec) ??
        (await this.#members?.answer(request, from)) ??
        this.#predictors.answer(request)
    )
    network.onPeer(event => {
      this.#members?.onPeer(event)
      if (event.kind !== 'lost') return this.#edges.candidate(event)
      this.#contacts.delete(event.id)
      this.#publisher.lost(event.id)
      this.#edges.lost(event)
      this.#spares?.lost()
    })
    network.onGossip((topic, from, bytes) => this.#onGossip(topic, from, bytes))
    network.onRefused((peer, reason) => this.#publisher.refused(peer, reason))
    this.#bootstrap = new Bootstrap(network, options.peers ?? [], () => this.#edges.neighbours.length > 0, log)
    learner.listen(message => this.#onLearnerMessage(message), onFailure)
    const { workerToken } = options
    if (workerToken !== undefined) {
      const devices = openDevices({ token: workerToken, learner, log })
      learner.onDevice = (device, init) => devices.prepared(device, init)
      network.onDevice((line, from) => devices.accept(line, from))
    }
    this.#program = options.program && new ProgramLink(options.program.server, options.spec, learner, log)
    if (joins(options))
      this.#joining = new JoinWatch({
        id: network.id,
        network,
        spec: options.spec,
        onOther: contact => this.#joinInstead(contact),
        isWaiting: () => this.#status.joining,
        isLinked: () => this.#edges.neighbours.length > 0,
        begin: () => learner.post({ kind: 'begin' }),
        log
      })
  }

  get id(): string {
    return this.#network.id
  }

  /** Multiaddresses for the option `--peer` of other peers. */
  get addresses(): readonly string[] {
    return this.#network.addresses
  }

  /**
   * This peer’s view of the whole network.
   * @internal
   */
  get view(): NetworkView {
    return this.#publisher.view
  }

  /** The peers of the network whose id or name contains a text, and the path to each over tree neighbours. */
  search(text: string): Promise<FoundPeer[]> {
    return this.#publisher.search(text)
  }

  /** The peers behind a path of tree neighbours, with their totals; undefined if there is no such path. */
  subtree(path: readonly string[]): Promise<Subtree | undefined> {
    return this.#publisher.subtree(path)
  }

  /** The names of peers that have one. */
  #namesOf(ids: readonly string[]): Record<string, string> {
    const named = ids.flatMap(id => {
      const name = id === this.id ? this.#options.name : this.#publisher?.view.nameOf(id)
      return name === undefined ? [] : [[id, name] as const]
    })
    return Object.fromEntries(named)
  }

  /** A peer in a line of the log. */
  #label(id: string): string {
    const name = this.#publisher.view.nameOf(id)
    return name === undefined ? id : `${name} (${id})`
  }

  /** Why this peer does not adopt the better predictor of a neighbour. */
  get #disagreement(): string | undefined {
    const { quarantined, refused } = this.#status
    return quarantined ? quarantineProblem(quarantined) : refused && refusalProblem(refused)
  }

  get #mastership(): Pick<PeerStatus, 'algorithm' | 'master'> {
    const { algorithm } = this.#options.spec
    return algorithm === undefined ? {} : { algorithm, master: this.#edges.view().label.root }
  }

  status(): PeerStatus {
    const { neighbours, distrusted } = this.#edges
    const { received, sent } = this.#frames
    return peerStatus({
      id: this.id,
      ...this.#run,
      learner: this.#status,
      // The publisher asks for the first status while it is constructed.
      networkDrifts: this.#publisher?.view.networkDrifts ?? 0,
      problem:
        this.#learnerWatch.reason ??
        this.#publisher?.duplicate ??
        this.#disagreement ??
        this.#masterWatch?.problem ??
        this.#program?.problem ??
        this.#discards.warning,
      neighbours,
      names: this.#namesOf([this.id, ...neighbours, this.#status.predictor.origin, ...(this.#status.waitsFor ?? [])]),
      ...this.#mastership,
      distrusted,
      discardedShare: this.#discards.share,
      data: this.#options.stream && nameOf(this.#options.stream.data),
      received,
      sent
    })
  }

  /**
   * Predicts inputs, or predicts and then learns them.
   * @throws RequestError for invalid inputs, UnavailableError if too many requests are waiting
   */
  async request(request: InputRequest): Promise<InputAnswer> {
    if (request.action !== 'learn') return this.#learner.request(request)
    this.#takesRequests = true
    return this.#answers.once(request.key, async () => {
      const answer = await this.#learner.request(request)
      // Learned inputs are durable before the caller is notified.
      await this.#journal?.durable
      return answer
    })
  }

  /** What the inputs mean: the schema of the columns and the label. */
  get schema(): Schema {
    return schemaOf(this.#options.spec, this.#status.addedClasses)
  }

  /** What others need to join, for the join page. */
  get offer(): JoinOffer {
    const { id, addresses } = this
    const { data } = this.status()
    return joinOffer(this.#options, { id, addresses, networkId: this.#networkId, data })
  }

  /** Connections over WebSockets that an HTTP server receives; undefined if the peer takes none. */
  get upgrades(): WebSocketUpgrades | undefined {
    return this.#options.upgrades
  }

  /** The current predictor, encoded for `decodeSaved`. */
  async save(): Promise<Uint8Array> {
    const saved = await this.#learner.save()
    await this.#journal?.durable
    return saved
  }

  /** The predictor that serves predictions, as a safetensors file. @throws UnavailableError if the peer is stopping, or 16 downloads are in progress */
  download(): Promise<Download> {
    return this.#learner.download()
  }

  /** Why the peer is not ready for requests; undefined if the learner runs and its predictor has been updated. */
  get unreadiness(): string | undefined {
    if (this.#stopping) return 'the peer is stopping'
    const problem = this.#learnerWatch.reason ?? this.#publisher.duplicate
    if (problem !== undefined) return problem
    if (this.#status.joining) return 'the peer joins the network'
    if (this.#status.predictor.updates > 0) return undefined
    return `no update yet: the first update needs ${this.#options.spec.batch} inputs, or the end of all streams`
  }

  /** Simulates a partition: closes and blocks connections to the peers; undefined heals it. For demonstrations and tests. */
  block(peers: ReadonlySet<string> | undefined): void {
    this.#network.block(peers)
    if (peers === undefined) this.#bootstrap.retry()
  }

  /**
   * Changes the rate of the stream in inputs per second, and sets the maximum number of inputs between two updates of the predictor. For
   * demonstrations and tests.
   */
  pace(rate: number, perUpdate: number): void {
    this.#learner.post({ kind: 'pace', rate, perUpdate })
  }

  /** Tells the neighbours at once that this peer is leaving the tree. It learns on alone, until `rejoin`. */
  leave(): void {
    this.#publisher.leave()
    this.#edges.leave()
  }

  /** Returns to the tree after `leave`. */
  rejoin(): void {
    this.#edges.rejoin()
  }

  /** Stores a last checkpoint, notifies the neighbours, and stops. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown()
    return this.#stopping
  }

  async #shutDown(): Promise<void> {
    this.#bootstrap.stop()
    this.#joining?.stop()
    this.#learnerWatch.stop()
    const downloaded = this.#predictors.stop()
    this.#members?.stop()
    this.#spares?.stop()
    this.#program?.close()
    await this.#learner.stop()
    this.#publisher.stop()
    this.#alerts.stop()
    this.#edges.stop()
    await this.#network.stop()
    await downloaded
    await this.#checkpoints?.stored()
    await this.#store?.close()
  }

  /** The network of a contact has another model or schema. */
  #joinInstead(contact: string): void {
    const { log, stream } = this.#options
    const learned = 'this peer has learned alone, with another model or schema'
    if (stream === undefined || stream.data === '-' || this.#takesRequests) {
      log(
        'warn',
        `${contact} belongs to a network; ${learned}: restart it without --dir to join, which drops what it has learned`,
        {
          peer: contact
        }
      )
      return
    }
    log('info', `${contact} belongs to a network; ${learned}: it joins, and reads its file again`, { peer: contact })
    this.emit('other-network', new OtherNetworkError(contact))
  }

  #fail(error: Error): void {
    if (this.#stopping) return
    void this.stop().finally(() => this.emit('failed', error))
  }

  #onLearnerMessage(message: ToPeer): void {
    // With differential privacy, nothing that follows from a noisy sum leaves before its record is durable.
    if (this.#journal && this.#options.dp && WAITING.has(message.kind))
      this.#journal.whenDurable(() => this.#handle(message))
    else this.#handle(message)
  }

  #handle(message: ToPeer): void {
    switch (message.kind) {
      case 'frame':
        this.#frames.send(this.#edges, message.edge, message.bytes)
        break
      case 'announcement':
        this.#frames.announce(this.#edges, message.edge, message.bytes)
        break
      case 'consumed':
        this.#frames.consumed(message.edge)
        break
      case 'refused':
        this.#edges.ban(message.edge, message.reason)
        break
      case 'excluded':
        this.#edges.distrust(message.maker)
        break
      case 'status':
        this.#status = message.status
        this.#publisher.addPredictors(message.recent)
        this.#learnerWatch.reported()
        this.#edges.catchUp()
        this.#discards.add({
          at: performance.now(),
          inputs: message.status.progress.inputs,
          discarded: message.status.gradients.late,
          updates: message.status.predictor.updates
        })
        this.#alerts.own(message.status.drift)
        this.#masterWatch?.observe(
          this.#edges.view().label.root,
          message.status.waitsFor ?? [],
          message.status.predictor.updates,
          performance.now()
        )
        this.emit('status', this.status())
        break
      case 'journal':
        this.#journal?.write(message)
        break
      case 'checkpoint':
      case 'checkpoint-steps':
        this.#checkpoints?.write(message)
        break
      case 'announce':
        this.#predictors.announce(message.predictor)
        break
      case 'fetch':
        void this.#predictors.fetch(message.predictor, message.from, message.isLarge)
        break
      case 'download':
        void this.#predictors.download(message.predictor, message.from)
        break
      case 'to-program':
      case 'refuse-program':
        this.#program?.handle(message)
        break
      case 'warning':
        this.#options.log('warn', message.reason, {})
        break
      case 'notice':
        this.#options.log('info', message.line, {})
        break
      default:
        message satisfies never
    }
  }

  #onGossip(topic: Topic, from: string, bytes: Uint8Array): void {
    try {
      if (topic === 'beacon') this.#edges.receiveBeacon(from, bytes)
      else if (topic === 'head') this.#predictors.receiveHead(from, bytes)
      else this.#publisher.receiveRun(from, bytes)
    } catch (error) {
      const reason = `malformed gossip on ${topic}: ${(error as Error).message}`
      this.#network.ban(from, reason)
    }
  }
}

/** Messages that wait for the journal with differential privacy. Frames and predictors always wait. */
const WAITING: ReadonlySet<ToPeer['kind']> = new Set(['announcement', 'announce', 'status'])

/** The last part of a path. */
function nameOf(path: string): string {
  return path.split(/[\\/]/).findLast(part => part !== '') ?? path
}
