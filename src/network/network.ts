/**
 * A peer's connection to the others: listens and dials, opens sessions with compatible peers, gossips, fetches, and enforces
 * access control. It does not interpret the messages.
 */
import './polyfill.js'
import type { Connection, Stream } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import { RateLimiter } from '../base/rate-limiter.js'
import { AccessControl, RefusalLog } from './access.js'
import { type KnownPeer, type PeerEvent, PeerTable, receiveReferral, Trimmer } from './connections.js'
import { DeviceLine } from './device-line.js'
import { Dialer, explainListen } from './dialer.js'
import {
  IncompatiblePeerError,
  NetworkError,
  ProtocolViolationError,
  SessionClosedError,
  UnreachablePeerError
} from './errors.js'
import { type FetchHandler, serveRequest } from './fetch.js'
import { Gossip, type GossipHandler, receiveCatchUp, sendCatchUp } from './gossip.js'
import { exchangeHello, probeHello } from './handshake.js'
import { type Hello, helloTag, inNetworkWithId } from './hello.js'
import { createHost, type Host } from './host.js'
import { parsePeerId, peerIdOf } from './keys.js'
import {
  catchUpProtocol,
  defaultLimits,
  deviceProtocol,
  edgeProtocol,
  fetchProtocol,
  inNetwork,
  type Limits,
  referralProtocol,
  type Topic,
  tagged
} from './limits.js'
import type { NetworkOptions, PeerTarget } from './options.js'
import { Session } from './session.js'

/** Maximum number of streams per protocol, connection and direction. A pair of peers needs one, two while it is replaced. */
const streamsPerConnection = 4
/** How long addresses are kept, in ms. */
const addressesMs = 2000
const noAddresses: readonly string[] = []
/** Maximum number of remembered referrals. */
const maxReferrals = 1000
/** Tag that protects tree neighbours when libp2p prunes connections. */
const edgeTag = 'admb-edge'

/**
 * Creates and starts a network.
 * @throws MalformedAddressError, MalformedPeerIdError, DamagedKeyError, AddressInUseError, ListenError
 */
export async function createNetwork(options: NetworkOptions): Promise<Network> {
  const limits = { ...defaultLimits, ...options.limits }
  const allow = options.allow && new Set([...options.allow].map(parsePeerId))
  const access = new AccessControl(allow, undefined, options.membership)
  const hello = inNetworkWithId(options.hello, options.networkId)
  const tag = helloTag(hello)
  const host = await createHost({ ...options, tag, access, limits })
  const network = new Network(host, access, limits, { ...options, hello }, tag)
  try {
    await host.start()
  } catch (error) {
    await network.stop()
    throw explainListen(error as Error, options.listen)
  }
  network.start()
  return network
}

export class Network {
  /** This peer's id. */
  readonly id: string
  readonly #host: Host
  readonly #access: AccessControl
  readonly #limits: Limits
  readonly #options: NetworkOptions
  readonly #hello: Hello
  readonly #gossip: Gossip
  readonly #fetchProtocol: string
  readonly #catchUpProtocol: string
  /** Connections on which a stream for a catch-up is being opened. */
  readonly #catchingUp = new Set<Connection>()
  readonly #peers: PeerTable
  readonly #dialler: Dialer
  readonly #sessions = new Map<Session, Promise<void>>()
  readonly #refusals = new RefusalLog(() => performance.now())
  readonly #controlRate: RateLimiter
  readonly #fetchRate: RateLimiter
  #nextSession = 1
  #addresses: readonly string[] = []
  /** The addresses of an HTTP server among them. */
  #upgraded = noAddresses
  #addressesAt = Number.NEGATIVE_INFINITY
  #onSession: ((session: Session) => void) | undefined
  #onFetch: FetchHandler | undefined
  #onRefused: ((peer: string, reason: string) => void) | undefined
  readonly #trimmer: Trimmer
  /** Time at which each peer closed its connection to this one with a referral, by the monotonic clock in ms. */
  readonly #referredAt = new Map<string, number>()
  #stopping: Promise<void> | undefined

  /**
   * @param host not started; use `createNetwork`
   * @param options whose hello has the network id
   * @param tag of the hello
   */
  constructor(host: Host, access: AccessControl, limits: Limits, options: NetworkOptions, tag: string) {
    this.id = peerIdOf(options.privateKey)
    this.#host = host
    this.#access = access
    this.#limits = limits
    this.#options = options
    this.#controlRate = new RateLimiter(limits.controlPerSecond, () => performance.now())
    this.#fetchRate = new RateLimiter(limits.fetchesPerSecond, () => performance.now())
    this.#peers = new PeerTable(host, connection => void this.#sendCatchUp(connection))
    this.#dialler = new Dialer(host, this.id, access, limits)
    this.#hello = options.hello
    this.#gossip = new Gossip(host.services.gossip, access, limits.gossipPerSecond, tag)
    this.#fetchProtocol = inNetwork(fetchProtocol, options.networkId)
    this.#catchUpProtocol = tagged(catchUpProtocol, tag)
    const streams = { maxInboundStreams: streamsPerConnection, maxOutboundStreams: streamsPerConnection }
    void host.handle(edgeProtocol, this.#acceptSession, streams)
    void host.handle(this.#fetchProtocol, this.#acceptFetch, streams)
    void host.handle(this.#catchUpProtocol, this.#acceptCatchUp, streams)
    void host.handle(referralProtocol, this.#acceptReferral, streams)
    this.#trimmer = new Trimmer({
      host,
      limits,
      isUsed: peer =>
        options.relay === true || this.#hasSession(peer) || this.#gossip.isInMesh(peer) || this.#hasDevice(peer),
      contacts: () => this.#contacts()
    })
  }

  /** Subscribes to gossip; called by `createNetwork` once the host listens. */
  start(): void {
    this.#gossip.start()
  }

  /** Addresses at which others can dial this peer, each ending in `/p2p/<id>`; the same array until they change. */
  get addresses(): readonly string[] {
    const now = performance.now()
    const upgraded = this.#options.upgrades?.addresses ?? noAddresses
    if (now - this.#addressesAt > addressesMs || upgraded !== this.#upgraded) {
      this.#upgraded = upgraded
      const addresses = this.#host.getMultiaddrs().map(address => address.toString())
      if (addresses.join() !== this.#addresses.join()) this.#addresses = addresses
      this.#addressesAt = now
    }
    return this.#addresses
  }

  /** Peers that are connected. */
  get peers(): readonly KnownPeer[] {
    return this.#peers.connected
  }

  /** Sets the handler for sessions opened by other peers, called after the hellos agreed. It must start or close the session. */
  onSession(handler: (session: Session) => void): void {
    this.#onSession = handler
  }

  /** Sets the handler for peers that connect, disconnect, or are discovered by mDNS. */
  onPeer(handler: (event: PeerEvent) => void): void {
    this.#peers.onEvent(handler)
  }

  /** Sets the handler for gossip. `from` is the origin, which has signed the message. */
  onGossip(handler: GossipHandler): void {
    this.#gossip.onMessage(handler)
  }

  /** Sets the handler for peers that are refused or banned. */
  onRefused(handler: (peer: string, reason: string) => void): void {
    this.#onRefused = handler
  }

  /** Maximum size of a frame and of the response to a request, in bytes. */
  get maxFrameBytes(): number {
    return this.#options.maxFrameBytes
  }

  /** Sets the handler for fetch requests. Default: every request fails. */
  onFetch(handler: FetchHandler): void {
    this.#onFetch = handler
  }

  /** Takes device workers from now on. @param handler receives the id of each */
  onDevice(handler: (line: DeviceLine, from: string) => void): void {
    const accept = (stream: Stream, connection: Connection) =>
      handler(new DeviceLine(stream, this.#options.maxFrameBytes, this.#limits), connection.remotePeer.toString())
    void this.#host.handle(deviceProtocol, accept)
  }

  /**
   * Joins the devices of a peer.
   * @throws NetworkError with the cause, or the signal's reason
   */
  async openDevice(target: PeerTarget, signal: AbortSignal): Promise<DeviceLine> {
    const connection = await this.#dialler.dial(target, signal)
    const stream = await this.#dialler.openStream(connection, deviceProtocol, signal)
    return new DeviceLine(stream, this.#options.maxFrameBytes, this.#limits)
  }

  /**
   * Connects to a peer.
   * @returns its peer id
   * @throws NetworkError with the cause, or the signal's reason
   */
  async connect(target: PeerTarget, signal: AbortSignal): Promise<string> {
    return (await this.#dialler.dial(target, signal)).remotePeer.toString()
  }

  /**
   * Opens a session, dialling if necessary. The caller must start or close it.
   * @throws NetworkError with the cause (IncompatiblePeerError is permanent), or the signal's reason
   */
  async open(target: PeerTarget, signal: AbortSignal): Promise<Session> {
    const connection = await this.#dialler.dial(target, signal)
    const stream = await this.#dialler.openStream(connection, edgeProtocol, signal)
    return this.#handshake(stream, connection, true, signal)
  }

  /**
   * Exchanges hellos without opening a session, whether they are compatible or not.
   * @returns the hello of the other end
   * @throws NetworkError with the cause, or the signal's reason
   */
  async exchangeHello(target: PeerTarget, ours: Hello, signal: AbortSignal): Promise<Hello> {
    const connection = await this.#dialler.dial(target, signal)
    const stream = await this.#dialler.openStream(connection, edgeProtocol, signal)
    return probeHello(stream, connection.remotePeer.toString(), ours, this.#limits)
  }

  /**
   * Sends a request to a peer, dialling if necessary.
   * @param request at most 64 KiB
   * @returns the response, at most `maxFrameBytes`; it owns its whole ArrayBuffer
   * @throws NetworkError with the cause, or the signal's reason
   */
  fetch(target: PeerTarget, request: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    return this.#dialler.fetch(target, this.#fetchProtocol, request, this.#options.maxFrameBytes, signal)
  }

  /** Publishes up to 16 KiB. Peers that connect before the topic's next message receive it too. @throws RangeError */
  publish(topic: Topic, message: Uint8Array): void {
    this.#gossip.publish(topic, message).then(
      // A run is announced again.
      recipients => topic !== 'run' && this.#sendCatchUpToOthers(recipients),
      (error: Error) => this.#options.log('warn', 'gossip failed', { reason: error.message })
    )
  }

  /** Whether a peer has closed its connection to this one with a referral within the last `ms`. */
  wasReferredBy(peer: string, ms: number): boolean {
    return performance.now() - (this.#referredAt.get(peer) ?? Number.NEGATIVE_INFINITY) < ms
  }

  /** Replaces the set of blocked peers and closes their connections. */
  block(peers: ReadonlySet<string> | undefined): void {
    this.#access.block(peers ?? new Set())
    for (const peer of peers ?? []) this.disconnect(peer, 'blocked')
  }

  /** Bans a peer, for twice as long as the last time, and disconnects it. @returns duration in ms */
  ban(peer: string, reason: string): number {
    const ms = this.#access.ban(peer, reason)
    this.#options.log('warn', `peer ${peer} is banned for ${ms / 1000} s: ${reason}`, { peer, reason, ms })
    this.#onRefused?.(peer, `banned for ${ms / 1000} s: ${reason}`)
    this.disconnect(peer, reason)
    return ms
  }

  /** Aborts all connections and sessions of a peer, e.g. because it seems dead. */
  disconnect(peer: string, reason: string): void {
    for (const connection of this.#host.getConnections()) {
      if (connection.remotePeer.toString() === peer) connection.abort(new Error(reason))
    }
  }

  /** Closes all sessions (with a reason) and connections, and stops listening. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown()
    return this.#stopping
  }

  async #shutDown(): Promise<void> {
    const released = [...this.#sessions.values()]
    for (const session of [...this.#sessions.keys()]) session.close('this peer stops')
    await Promise.all(released)
    this.#trimmer.stop()
    this.#peers.stop()
    this.#gossip.stop()
    await this.#host.stop()
  }

  async #handshake(stream: Stream, connection: Connection, outbound: boolean, signal?: AbortSignal): Promise<Session> {
    const peer = connection.remotePeer.toString()
    try {
      const channel = await exchangeHello(stream, peer, this.#hello, this.#limits, signal)
      const session = new Session(channel, {
        id: this.#nextSession++,
        peer,
        outbound,
        maxFrameBytes: this.#options.maxFrameBytes,
        controlRate: this.#controlRate,
        onViolation: reason => this.ban(peer, reason),
        onClosed: () => this.#unprotect(peer)
      })
      this.#sessions.set(session, channel.released)
      void channel.released.then(() => this.#sessions.delete(session))
      this.#protect(peer, true)
      return session
    } catch (error) {
      if (error instanceof UnreachablePeerError) connection.abort(error)
      throw error
    }
  }

  readonly #acceptSession = async (stream: Stream, connection: Connection): Promise<void> => {
    const peer = connection.remotePeer.toString()
    try {
      const session = await this.#handshake(stream, connection, false)
      if (this.#onSession === undefined || this.#stopping) session.close('no sessions are taken here now')
      else this.#onSession(session)
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      if (error instanceof ProtocolViolationError) this.ban(peer, error.message)
      else if (error instanceof SessionClosedError) {
        // If both ends open a session at once, one of them gives up.
        this.#options.log('debug', `a session with ${peer} ended before it began: ${error.reason}`, { peer })
      } else {
        if (this.#refusals.isDue(peer, error.message))
          this.#options.log('warn', `a session was refused: ${error.message}`, { peer, code: error.code })
        if (error instanceof IncompatiblePeerError) this.#onRefused?.(peer, error.message)
      }
    }
  }

  readonly #acceptFetch = (stream: Stream, connection: Connection): void => {
    const peer = connection.remotePeer.toString()
    const taken = this.#fetchRate.take(peer)
    const nothing: FetchHandler = async () => undefined
    const busy: FetchHandler = () => Promise.reject(new Error('too many requests, wait a second'))
    const handler = taken ? (this.#onFetch ?? nothing) : busy
    const onViolation = (reason: string) => this.ban(peer, reason)
    serveRequest(stream, peer, handler, this.#options.maxFrameBytes, this.#limits, onViolation)
  }

  readonly #acceptCatchUp = (stream: Stream, connection: Connection): void => {
    const peer = connection.remotePeer.toString()
    const onViolation = (reason: string) => this.ban(peer, reason)
    receiveCatchUp(stream, this.#limits, latest => this.#gossip.receiveCatchUp(peer, latest), onViolation)
  }

  readonly #acceptReferral = (stream: Stream, connection: Connection): void => {
    const peer = connection.remotePeer.toString()
    const onContacts = (contacts: readonly KnownPeer[]) => {
      if (this.#referredAt.size >= maxReferrals) this.#referredAt.clear()
      this.#referredAt.set(peer, performance.now())
      this.#peers.referred(contacts.filter(({ id }) => id !== this.id))
    }
    receiveReferral(stream, this.#limits, onContacts, reason => this.ban(peer, reason))
  }

  #hasSession(peer: string): boolean {
    return [...this.#sessions.keys()].some(session => session.peer === peer && session.ended === undefined)
  }

  #hasDevice(peer: string): boolean {
    const connections = this.#host.getConnections(peerIdFromString(peer))
    return connections.some(({ streams }) => streams.some(({ protocol }) => protocol === deviceProtocol))
  }

  /** Connected peers in random order, those with a session first. */
  #contacts(): readonly KnownPeer[] {
    const ranked = this.#peers.connected
      .filter(({ addresses }) => addresses.length > 0)
      .map(peer => ({ peer, rank: Math.random() - (this.#hasSession(peer.id) ? 1 : 0) }))
    return ranked.sort((a, b) => a.rank - b.rank).map(({ peer }) => peer)
  }

  /** Sends the latest messages to connected peers that gossipsub does not reach yet. */
  #sendCatchUpToOthers(recipients: ReadonlySet<string>): void {
    for (const { id } of this.#peers.connected) {
      const connections = recipients.has(id) ? [] : this.#host.getConnections(peerIdFromString(id))
      const connection = connections.find(({ limits }) => limits === undefined)
      if (connection !== undefined) void this.#sendCatchUp(connection)
    }
  }

  async #sendCatchUp(connection: Connection): Promise<void> {
    const { latest } = this.#gossip
    // What is published meanwhile is sent as well.
    if (latest.size === 0 || this.#catchingUp.has(connection)) return
    this.#catchingUp.add(connection)
    try {
      const signal = AbortSignal.timeout(this.#limits.helloTimeoutMs)
      sendCatchUp(await connection.newStream(this.#catchUpProtocol, { signal }), latest, this.#limits)
    } catch (error) {
      const reason = (error as Error).message
      this.#options.log('debug', 'gossip catch-up failed', { peer: connection.remotePeer.toString(), reason })
    } finally {
      this.#catchingUp.delete(connection)
    }
  }

  #unprotect(peer: string): void {
    if (!this.#hasSession(peer) && !this.#stopping) this.#protect(peer, false)
  }

  #protect(peer: string, on: boolean): void {
    const tags = { [edgeTag]: on ? { value: 100 } : undefined }
    this.#host.peerStore.merge(peerIdFromString(peer), { tags }).catch(error => {
      this.#options.log('debug', 'tagging a peer failed', { peer, reason: (error as Error).message })
    })
  }
}
