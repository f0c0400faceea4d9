/**
 * A run of one scenario: a discrete-event loop over inputs, messages, ticks, timers and faults in virtual time. Every input is
 * scored with the serving predictor of its node and compared with the best predictor.
 */
import { AdmbNode, type AdmbOptions, type Predictor, type PredictorId, QUIET_PERIODS } from '../src/admb/index.js'
import { batchOf } from '../src/admb/state/predictor.js'
import { Adversaries } from './adversaries/index.js'
import { algorithms } from './algorithms/index.js'
import { UpdateTime } from './algorithms/update-time.js'
import { invariants, Violation } from './checkers/index.js'
import { InvariantMonitor } from './checkers/monitor.js'
import { type Event, EventQueue, SlotTable, TraceHash } from './engine/queue.js'
import { Random } from './engine/random.js'
import { drawFaults } from './faults/draw.js'
import { FaultInjector } from './faults/fault-injector.js'
import { type Fault, Population } from './faults/schedule.js'
import { createLearning } from './learning.js'
import { Transport, type TransportHost } from './network/transport.js'
import type { ObservedRun, RunObserver, SimulateOptions } from './options.js'
import { RegretMeter } from './regret/meter.js'
import { areLinked, GoodPeriods, repairTime, spreadTime, WarmupTracker } from './regret/periods.js'
import type { RunResult } from './result.js'
import { endOf, type Scenario, ScenarioError } from './scenario.js'
import { Statuses } from './statuses.js'
import { type Arrivals, createInputs, drawArrivals } from './streams/create.js'
import type { Inputs } from './streams/inputs.js'
import { createLabels, createTopology, type Topology } from './topology.js'
import { createWiring, type WiringRun } from './wiring/create.js'
import type { Message, Wiring } from './wiring/wiring.js'
import type { Algorithm, Learning, LearningNode, NodeFactory, PredictorCause, World } from './world.js'

const Kind = { Input: 0, Deliver: 1, Tick: 2, Timer: 3, Fault: 4, Wake: 5 } as const

/** Ticks have a later rank than messages, so that a node receives all messages of an instant before it sends. */
const TICK_RANK = 1

interface Timer {
  readonly node: number
  readonly tag: number
  /** Lifetime of the node that started it; in a later one the timer is void. */
  readonly lifetime: number
}

/** Network crossings within which the network must become quiescent: at each hop the longest backoff may have to expire. */
const MAX_QUIESCENCE_CROSSINGS = 400

/** Times that all nodes use what is left without an update that follows. */
const MAX_REMAINDER_ROUNDS = 8

export class Simulation implements World, TransportHost, WiringRun, ObservedRun {
  readonly topology: Topology
  readonly adversaries: Adversaries
  readonly learner: Learning['learner']
  readonly recipe: Learning['recipe']
  readonly start: Learning['start']
  readonly batch: number
  readonly adaptiveBatch: Learning['adaptiveBatch']
  readonly localSteps: Learning['localSteps']
  readonly budget: Learning['budget']
  readonly influence: Learning['influence']
  readonly noise: Learning['noise']
  readonly period: number
  readonly latency: number
  readonly isOrdered: boolean
  readonly carry: number
  readonly labels: string[]
  readonly random: Random
  readonly #observer: RunObserver
  readonly #warmup: WarmupTracker
  readonly population: Population
  readonly transport: Transport
  readonly algorithm: Algorithm
  now = 0
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
  readonly sharesPredictors: boolean
  readonly #queue = new EventQueue()
  readonly #trace = new TraceHash()
  readonly #inputs: Inputs
  /** 0 if labels are numbers. */
  readonly #classes: number
  readonly #arrivals: Arrivals
  readonly #wiring: Wiring
  readonly #injector: FaultInjector
  readonly #updateTime: UpdateTime | undefined
  readonly #statuses: Statuses | undefined
  readonly #meter: RegretMeter
  readonly #goodPeriods: GoodPeriods
  readonly #timers = new SlotTable<Timer>()
  readonly #createLearningNode: NodeFactory
  readonly #monitor: InvariantMonitor | undefined
  readonly #quiesces: boolean
  /** Number of inputs so far; the meter counts those of correct nodes. */
  #served = 0
  readonly #event: Event = { time: 0, kind: 0, a: 0, b: 0 }
  #events = 0
  /** Whether the final phase without faults has begun. */
  #faultsOver = false
  #violation: string | undefined

  constructor(scenario: Scenario, options: SimulateOptions) {
    this.scenario = scenario
    const { nodes, batch, period, latency, carry, seed, delay, loss, reorder } = scenario
    const random = new Random(seed)
    this.random = random.fork('algorithm')
    this.batch = batch
    this.period = period
    this.latency = latency
    this.isOrdered = delay === 'constant' && loss === 0 && reorder === 0
    this.carry = carry
    if (options.topology && options.topology.nodes !== nodes) {
      throw new ScenarioError(
        `the topology has ${options.topology.nodes} nodes, but the scenario has ${nodes}; set nodes=${options.topology.nodes}`
      )
    }
    this.topology = options.topology ?? createTopology(scenario, random.fork('topology'))
    this.adversaries = new Adversaries(scenario.adversaries, this.topology, random.fork('adversaries'), () => this.now)
    this.labels = createLabels(scenario, random.fork('labels'))
    this.#inputs = options.inputs ?? createInputs(scenario, random.fork('stream'), options.data)
    const { model, classes } = this.#inputs
    this.#classes = model === 'linear' ? 0 : (classes ?? 2)
    const learning = createLearning(scenario, options, this.#inputs, this.topology, random.fork('noise'))
    this.learner = learning.learner
    this.recipe = learning.recipe
    this.start = learning.start
    this.adaptiveBatch = learning.adaptiveBatch
    this.localSteps = learning.localSteps
    this.budget = learning.budget
    this.influence = learning.influence
    this.noise = learning.noise
    this.#arrivals = drawArrivals(scenario, random.fork('pace'))
    const faults = options.faults ?? drawFaults(scenario, this.topology, endOf(scenario), random.fork('faults'))
    this.faults = [...faults].sort((a, b) => a.time - b.time)
    this.population = new Population(nodes, this.faults)
    this.transport = new Transport(scenario, random.fork('links'), this.population, this)
    this.#observer = options.observer ?? {}
    this.#warmup = new WarmupTracker(nodes, scenario.starts === 'distinct' ? 1 : 0)
    const recovery = repairTime(period, latency) + spreadTime(this.topology.diameter, latency)
    this.#goodPeriods = new GoodPeriods(recovery, () => this.#areLinked())
    this.#meter = new RegretMeter(this.learner, this.#inputs, this.#goodPeriods, scenario)
    this.#createLearningNode = options.node ?? (settings => new AdmbNode(settings))
    this.#quiesces = options.quiesce ?? false
    const createInvariants = options.invariants ?? (scenario.checks ? invariants : undefined)
    this.#monitor = createInvariants && new InvariantMonitor(createInvariants(this))
    // A checked run verifies that every node computes each predictor itself.
    this.sharesPredictors = createInvariants === undefined && options.node === undefined
    const { watchers, warmup, statusSample: sample, updateTime } = scenario
    this.#updateTime = updateTime > 0 ? new UpdateTime(this, updateTime) : undefined
    const created = algorithms[scenario.algorithm].create(this)
    const algorithm = this.#updateTime?.wrap(created) ?? created
    this.#statuses =
      watchers === undefined
        ? undefined
        : new Statuses(algorithm, this, { watchers, warmup, sample, random: random.fork('statuses') })
    this.algorithm = this.#statuses ?? algorithm
    const overlayRandom = random.fork('overlay')
    this.#wiring =
      options.wiring?.(this, overlayRandom) ?? createWiring(this, createInvariants !== undefined, overlayRandom)
    const { population, transport, labels } = this
    this.#injector = new FaultInjector({
      population,
      transport,
      algorithm: this.algorithm,
      labels,
      wiring: this.#wiring
    })
  }

  get hasAdversaries(): boolean {
    return this.adversaries.count > 0
  }

  batchOf(predictor: Predictor): number {
    return batchOf(this.adaptiveBatch ?? this.batch, predictor)
  }

  isUp(node: number): boolean {
    return node < 0 || this.population.isUp(node)
  }

  get linkedSince(): number | undefined {
    return this.#goodPeriods.linkedSince
  }

  get losses(): ObservedRun['losses'] {
    return this.#meter
  }

  neighbours(node: number): Iterable<number> {
    return this.#wiring.neighbours(node)
  }

  isCut(from: number, to: number): boolean {
    return this.transport.reachability.isCut(from, to)
  }

  predictorChanged(node: number, id: PredictorId, cause: PredictorCause): void {
    this.#statuses?.predictorChanged(node, id)
    this.#warmup.predictorChanged(node, id.updates, this.#meter.count)
    if (cause === 'updated') this.#updateTime?.begin(node)
    this.#observer.onPredictorChange?.(this.now, node, id, cause)
  }

  updated(node: number | undefined, updates: number, count: number): void {
    if (node !== undefined) this.#updateTime?.begin(node)
    else for (let each = 0; each < this.topology.nodes; each++) this.#updateTime?.begin(each)
    this.#monitor?.updated(updates, count)
  }

  refused(node: number, neighbour: number): void {
    this.#wiring.ban?.(node, neighbour)
  }

  excluded(node: number, maker: string): void {
    this.#wiring.distrust?.(node, maker)
  }

  createNode(index: number, options: AdmbOptions): LearningNode {
    const hostile = this.adversaries.create(index, options)
    if (hostile !== undefined) return hostile
    if (this.adversaries.isHostile(index)) return this.#createLearningNode(options, index)
    return this.#monitor?.create(index, options, this.#createLearningNode) ?? this.#createLearningNode(options, index)
  }

  /** Bytes sent; 0 if frames are not as on a network. */
  get #bytes(): number {
    return this.scenario.wire ? this.transport.bytes : 0
  }

  send(from: number, to: number, content: unknown, bytes: number): void {
    if (this.#updateTime?.isBusy(from)) this.#updateTime.whenMade(from, () => this.send(from, to, content, bytes))
    else this.#wiring.send(from, to, content, bytes)
  }

  freeAt(from: number, to: number): number {
    return this.transport.freeAt(from, to)
  }

  schedule(time: number, slot: number): void {
    this.#queue.push(time, Kind.Deliver, slot, 0)
  }

  wakeAt(time: number, node: number): void {
    this.#queue.push(time, Kind.Wake, node, 0)
  }

  treeChanged(): void {
    this.#goodPeriods.changed(this.now)
  }

  deliver(message: Message): void {
    const { from, to, content, isOverlay, lifetime } = message
    if (isOverlay) this.#wiring.receive(message)
    else if (this.isUp(to) && this.#lifetime(to) === lifetime) this.algorithm.receive(to, from, content)
  }

  startTimer(delay: number, node: number, tag: number): void {
    this.#queue.push(this.now + delay, Kind.Timer, this.#timers.put({ node, tag, lifetime: this.#lifetime(node) }), 0)
  }

  run(): Omit<RunResult, 'seconds'> {
    const { inputs, nodes, duration } = this.scenario
    const end = duration === undefined ? Number.POSITIVE_INFINITY : endOf(this.scenario)
    const { firstInputs, firstTicks } = this.#arrivals
    for (let node = 0; node < nodes; node++) this.#queue.push(firstInputs[node], Kind.Input, node, 0)
    for (let node = 0; node < nodes; node++) this.#queue.push(firstTicks[node], Kind.Tick, node, 0, TICK_RANK)
    for (const [index, { time }] of this.faults.entries()) this.#queue.push(time, Kind.Fault, index, 0)
    for (let node = 0; node < nodes; node++) {
      if (!this.population.isAlive(node)) this.#observer.onFault?.(0, { time: 0, kind: 'leave', node })
    }
    const meter = this.#meter
    this.#observer.onStart?.(this)
    this.#statuses?.start()
    this.#wiring.start()
    try {
      while (this.#served < inputs && this.#queue.nextTime <= end && this.#step());
      meter.end(this.now, this.algorithm.totals().updates, this.#bytes)
      if (this.#quiesces) this.#quiesce()
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      this.#violation = `${error.message} (at ${this.now.toFixed(2)} ms)`
    }
    // Hostile nodes may do any harm to a network that does not defend itself.
    const { divergence } = meter
    if (divergence !== undefined && this.adversaries.count === 0) this.#violation ??= `divergence: ${divergence}`
    const totals = this.algorithm.totals()
    this.#trace.add(meter.loss, totals.updates, totals.adoptions)
    const { algorithm, batch, seed } = this.scenario
    return {
      algorithm,
      nodes,
      inputs: meter.count,
      batch,
      seed,
      startInputs: this.#warmup.inputs,
      updates: totals.updates,
      adoptions: totals.adoptions,
      used: totals.used,
      held: totals.held,
      discarded: totals.discarded ?? this.#served - totals.used - totals.held,
      messages: this.transport.messages,
      bytes: this.#bytes,
      statuses: this.#statuses?.traffic,
      violations: this.#violation === undefined ? [] : [this.#violation],
      events: this.#events,
      traceHash: this.#trace.digest,
      virtualMs: this.now,
      ...meter.result(this.scenario, this.topology, this.faults.length > 0)
    }
  }

  /** Processes the next event. @returns false if there is none */
  #step(): boolean {
    const event = this.#event
    if (!this.#queue.pop(event)) return false
    const observer = this.#observer
    this.#events++
    this.now = event.time
    this.#trace.add(event.time, event.kind, event.a)
    observer.beforeEvent?.(event.time, () => this.#describe(event))
    switch (event.kind) {
      case Kind.Input:
        this.#input(event.a)
        break
      case Kind.Deliver:
        this.transport.arrive(event.a)
        break
      case Kind.Tick:
        this.#queue.push(this.now + this.period, Kind.Tick, event.a, 0, TICK_RANK)
        if (this.isUp(event.a)) this.algorithm.tick(event.a)
        break
      case Kind.Timer:
        this.#timer(event.a)
        break
      case Kind.Wake:
        this.#wake(event.a)
        break
      case Kind.Fault:
        if (!this.#faultsOver) this.#fault(this.faults[event.a])
        break
      default:
        throw new RangeError(`no event of kind ${event.kind}`)
    }
    observer.afterEvent?.(event.time)
    return true
  }

  #input(node: number): void {
    const { inputs } = this.scenario
    const meter = this.#meter
    if (this.#served >= inputs) return
    this.#queue.push(this.now + this.#arrivals.intervals[node], Kind.Input, node, 0)
    if (!this.isUp(node)) return
    const examples = this.#inputs.next()
    this.#served++
    if (!this.adversaries.isHostile(node)) meter.record(this.now, node, this.algorithm.serving(node), examples)
    const data = { classes: this.#classes, dimension: this.#inputs.dimension }
    if (this.algorithm.version) this.#monitor?.served(this.algorithm.version(node))
    this.algorithm.input(node, this.adversaries.inputs(node, examples, data), this.#served - 1)
    this.#observer.onInput?.(this.#served)
    if (meter.isPointDue) meter.point(this.now, this.algorithm.totals().updates, this.#bytes)
  }

  /**
   * Ends all faults and continues until the network is quiescent. Nodes then use the gradients that are left. With an even seed, they do
   * so before the repairs as well.
   * @throws Violation if it does not become quiescent
   */
  #quiesce(): void {
    this.#faultsOver = true
    this.transport.stopFaults()
    const { now: time } = this
    this.#observer.beforeEvent?.(time, () => 'inputs and faults are over: the network must become quiescent')
    if (this.scenario.seed % 2 === 0) this.#useRemainder()
    this.#fault({ time, kind: 'heal' })
    for (const fault of this.faults) if (fault.kind === 'clog') this.#fault({ ...fault, kind: 'unclog' })
    this.#wiring.restore()
    for (let node = 0; node < this.topology.nodes; node++) {
      this.#fault({ time, kind: 'resume', node })
      this.#fault({ time, kind: 'unhang', node })
      this.#fault({ time, kind: 'restart', node, disk: 'kept' })
    }
    this.#settle()
    if (this.algorithm.finish === undefined) return
    // Nodes whose sums overlap, or that wait, need several rounds, as peers have them. DMB needs one for each batch of inputs that wait.
    for (let idle = 0, round = 1; ; round++) {
      const { updates } = this.algorithm.totals()
      this.#useRemainder()
      this.#settle()
      const violation = this.#monitor?.checkEnd(node => this.isUp(node))
      if (violation === undefined) return
      idle = this.algorithm.totals().updates > updates ? 0 : idle + 1
      if (idle === MAX_REMAINDER_ROUNDS || round === MAX_REMAINDER_ROUNDS + this.scenario.inputs) throw violation
    }
  }

  /** From now on no inputs are expected. Continues until nodes have used what was left, if nothing else has changed at them. */
  #useRemainder(): void {
    for (let node = 0; node < this.topology.nodes; node++) this.algorithm.finish?.(node)
    const crossing = (this.topology.diameter + 1) * (this.period + 2 * this.latency)
    const until = this.now + (QUIET_PERIODS + 2) * this.period + crossing
    while (this.#queue.nextTime <= until && this.#step());
  }

  /** Continues until the network is quiescent. @throws Violation */
  #settle(): void {
    const { now: time } = this
    const crossing = (this.topology.diameter + 1) * (this.period + 2 * this.latency)
    let violation: Violation | undefined
    for (let crossings = 1; crossings <= MAX_QUIESCENCE_CROSSINGS; crossings++) {
      while (this.#queue.nextTime <= time + crossings * crossing && this.#step());
      violation = this.#wiring.checkQuiescence?.() ?? this.#monitor?.checkQuiescence(node => this.isUp(node))
      if (violation === undefined) return
    }
    if (violation) throw violation
  }

  #describe({ kind, a }: Event): string {
    switch (kind) {
      case Kind.Input:
        return this.isUp(a) ? `an input at node ${a}` : `no input at node ${a}, which is not running`
      case Kind.Deliver: {
        const { from, to } = this.transport.peek(a)
        return `a message from node ${from} reaches node ${to}`
      }
      case Kind.Tick:
        return `a period ends at node ${a}`
      case Kind.Wake:
        return `a timer of the overlay expires at node ${a}`
      case Kind.Timer:
        return `a timer of node ${this.#timers.get(a).node} expires`
      default: {
        const { time: _time, ...fault } = this.faults[a]
        return `fault ${JSON.stringify(fault)}`
      }
    }
  }

  #areLinked(): boolean {
    const { reachability } = this.transport
    return areLinked(
      this.topology.nodes,
      node => this.neighbours(node),
      node => this.isUp(node),
      (from, to) => reachability.isCut(from, to) || reachability.isClogged(from, to)
    )
  }

  #lifetime(node: number): number {
    return node < 0 ? 0 : this.population.lifetime(node)
  }

  #timer(slot: number): void {
    const { node, tag, lifetime } = this.#timers.take(slot)
    if (this.#lifetime(node) === lifetime) this.#injector.runWhenUp(node, () => this.algorithm.timer(node, tag))
  }

  #wake(node: number): void {
    this.#injector.runWhenUp(node, () => this.#wiring.wake(node))
  }

  #fault(fault: Fault): void {
    if ('node' in fault && !this.population.apply(fault)) return
    this.#observer.onFault?.(this.now, fault)
    // Events of the fault itself are not in a good period.
    this.#goodPeriods.changed(this.now)
    this.#injector.inject(fault)
    this.#goodPeriods.changed(this.now)
  }
}
