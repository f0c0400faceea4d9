/**
 * One run: a scenario, an algorithm, virtual time. Inputs arrive, messages travel, nodes crash and come back; every input
 * is scored with what serves predictions at its node, and with the best predictor in hindsight.
 */
import {
  AdmbNode,
  type AdmbOptions,
  type Predictor,
  type PredictorId,
  type Recipe,
  startingPredictor
} from '../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest } from '../src/learner/index.js'
import { algorithms } from './algorithms/index.js'
import { type Invariants, invariants, Violation } from './checkers/index.js'
import { Watch } from './checkers/watch.js'
import { type Event, EventQueue } from './engine/queue.js'
import { Random } from './engine/random.js'
import { Slots } from './engine/slots.js'
import { Trace } from './engine/trace.js'
import { drawFaults } from './faults/draw.js'
import { FaultInjector } from './faults/fault-injector.js'
import { Population } from './faults/population.js'
import type { Fault } from './faults/schedule.js'
import { createInputs } from './inputs.js'
import { labelsOf } from './labels.js'
import type { LearningNode, NodeFactory } from './learning-node.js'
import type { Message } from './network/message.js'
import { type Carrier, Transport } from './network/transport.js'
import type { Observer } from './observer.js'
import { createPace, type Pace } from './pace.js'
import { areLinked, GoodPeriods } from './regret/good-periods.js'
import { RegretMeter } from './regret/meter.js'
import { WarmupTracker } from './regret/warmup-tracker.js'
import type { RunResult } from './result.js'
import { type Scenario, ScenarioError } from './scenario.js'
import type { Inputs } from './streams/inputs.js'
import type { RecordedStream } from './streams/replay.js'
import { createTopology, type Topology } from './topology.js'
import { createWiring, type WiringFactory, type WiringRun } from './wiring/create.js'
import type { Wiring } from './wiring/wiring.js'
import type { Algorithm, World } from './world.js'

const Kind = { Input: 0, Deliver: 1, Tick: 2, Timer: 3, Fault: 4, Wake: 5 } as const

/** A node hears all that arrives at an instant before it speaks at that instant. */
const LAST = 1

interface Timer {
  readonly node: number
  readonly tag: number
  /** Of the node, which it does not outlive. */
  readonly life: number
}

/** Crossings of the network within which everything settles: at each hop the longest backoff may have to pass. */
const SETTLING = 100

/** What takes the place of what a scenario says. */
export interface SimulateOptions {
  /** Default: the scenario's stream. */
  readonly inputs?: Inputs
  /** What the stream `file` consists of. */
  readonly data?: RecordedStream
  /** Default: the scenario's rule and average. */
  readonly recipe?: Recipe
  /** Default: drawn as the scenario says. */
  readonly faults?: readonly Fault[]
  readonly observer?: Observer
  /** Properties to watch. Default: those that hold always if the scenario's `checks` is on, else none. */
  readonly invariants?: Invariants
  /** What learns at each node with the algorithm `admb`. Default: AdmbNode. */
  readonly node?: NodeFactory
  /** The tree, of as many nodes as the scenario has. Default: the scenario's. */
  readonly topology?: Topology
  /** Who is connected with whom, and how that is mended. Default: as the scenario's topology says. */
  readonly wiring?: WiringFactory
  /**
   * Whether to go on after the last input, without faults, until everything has settled; a violation if it does not.
   * Default: false.
   */
  readonly quiesce?: boolean
}

export class Simulation implements World, Carrier, WiringRun {
  readonly topology: Topology
  readonly learner
  readonly recipe: Recipe
  readonly start: Predictor
  readonly batch: number
  readonly period: number
  readonly latency: number
  readonly carry: number
  readonly labels: string[]
  readonly #observer: Observer
  readonly #warmup: WarmupTracker
  readonly population: Population
  readonly transport: Transport
  readonly algorithm: Algorithm
  now = 0
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
  readonly sharesPredictors: boolean
  readonly #queue = new EventQueue()
  readonly #trace = new Trace()
  readonly #inputs: Inputs
  readonly #pace: Pace
  readonly #wiring: Wiring
  readonly #injector: FaultInjector
  readonly #meter: RegretMeter
  readonly #periods: GoodPeriods
  readonly #timers = new Slots<Timer>()
  readonly #node: NodeFactory
  readonly #watch: Watch | undefined
  readonly #quiesces: boolean
  readonly #event: Event = { time: 0, kind: 0, a: 0, b: 0 }
  #events = 0
  /** Whether faults are over for good. */
  #calm = false
  #violation: string | undefined

  constructor(scenario: Scenario, options: SimulateOptions) {
    this.scenario = scenario
    const { nodes, batch, period, latency, carry, rule, average, seed } = scenario
    const random = new Random(seed)
    this.batch = batch
    this.period = period
    this.latency = latency
    this.carry = carry
    if (options.topology && options.topology.nodes !== nodes) {
      throw new ScenarioError(
        `the topology has ${options.topology.nodes} nodes, the scenario ${nodes}: give equally many`
      )
    }
    this.topology = options.topology ?? createTopology(scenario, random.fork('topology'))
    this.labels = labelsOf(scenario, random.fork('labels'))
    this.#inputs = options.inputs ?? createInputs(scenario, random.fork('stream'), options.data)
    const { model, dimension, classes } = this.#inputs
    this.learner = createLearner({ model, dimension, classes })
    this.recipe = options.recipe ?? {
      rule: createRule({ name: rule }),
      averaging: createAveraging({ name: average }),
      digest
    }
    this.start = startingPredictor(this.learner.initial(), this.recipe)
    this.#pace = createPace(scenario, random.fork('pace'))
    const until = scenario.warmup + (scenario.inputs / nodes) * scenario.interval
    const faults = options.faults ?? drawFaults(scenario, this.topology, until, random.fork('faults'))
    this.faults = [...faults].sort((a, b) => a.time - b.time)
    this.population = new Population(nodes, this.faults)
    this.transport = new Transport(scenario, random.fork('links'), this.population, this)
    this.#observer = options.observer ?? {}
    this.#warmup = new WarmupTracker(nodes, scenario.starts === 'distinct' ? 1 : 0)
    this.#periods = new GoodPeriods(this.topology.diameter * (period + 2 * latency), () => this.#areLinked())
    this.#meter = new RegretMeter(this.learner, this.#inputs, this.#periods, scenario)
    this.#node = options.node ?? (settings => new AdmbNode(settings))
    this.#quiesces = options.quiesce ?? false
    const watched = options.invariants ?? (scenario.checks ? invariants : undefined)
    this.#watch = watched && new Watch(watched(this))
    // Where everything is checked, every node makes every predictor itself.
    this.sharesPredictors = watched === undefined && options.node === undefined
    this.algorithm = algorithms[scenario.algorithm](this)
    const chances = random.fork('overlay')
    this.#wiring = options.wiring?.(this, chances) ?? createWiring(this, watched !== undefined, chances)
    const { population, transport, algorithm, labels } = this
    this.#injector = new FaultInjector({ population, transport, algorithm, labels, wiring: this.#wiring })
  }

  isUp(node: number): boolean {
    return node < 0 || this.population.isUp(node)
  }

  holds(node: number, id: PredictorId, how: 'updated' | 'adopted' | 'restarted'): void {
    this.#warmup.holds(node, id.updates, this.#meter.count)
    this.#observer.holds?.(this.now, node, id, how)
  }

  createNode(index: number, options: AdmbOptions): LearningNode {
    return this.#watch?.create(index, options, this.#node) ?? this.#node(options, index)
  }

  send(from: number, to: number, content: unknown, bytes: number): void {
    this.#wiring.send(from, to, content, bytes)
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

  rewired(): void {
    this.#periods.changed(this.now)
  }

  hand(message: Message): void {
    const { from, to, content, isOverlay, life } = message
    if (isOverlay) this.#wiring.receive(message)
    else if (this.isUp(to) && this.#life(to) === life) this.algorithm.receive(to, from, content)
  }

  after(delay: number, node: number, tag: number): void {
    this.#queue.push(this.now + delay, Kind.Timer, this.#timers.put({ node, tag, life: this.#life(node) }), 0)
  }

  run(): Omit<RunResult, 'seconds'> {
    const { inputs, nodes } = this.scenario
    const { firstInputs, firstTicks } = this.#pace
    for (let node = 0; node < nodes; node++) this.#queue.push(firstInputs[node], Kind.Input, node, 0)
    for (let node = 0; node < nodes; node++) this.#queue.push(firstTicks[node], Kind.Tick, node, 0, LAST)
    for (const [index, { time }] of this.faults.entries()) this.#queue.push(time, Kind.Fault, index, 0)
    for (let node = 0; node < nodes; node++) {
      if (!this.population.isAlive(node)) this.#observer.fault?.(0, { time: 0, kind: 'leave', node })
    }
    const meter = this.#meter
    this.#wiring.start()
    try {
      while (meter.count < inputs && this.#step());
      if (this.#quiesces) this.#quiesce()
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      this.#violation = `${error.message} (at ${this.now.toFixed(2)} ms)`
    }
    const tally = this.algorithm.tally()
    this.#trace.add(meter.loss, tally.updates, tally.adoptions)
    const { algorithm, batch, seed } = this.scenario
    return {
      algorithm,
      nodes,
      inputs: meter.count,
      batch,
      seed,
      startInputs: this.#warmup.inputs,
      updates: tally.updates,
      adoptions: tally.adoptions,
      discarded: tally.discarded,
      messages: this.transport.messages,
      bytes: this.transport.bytes,
      violations: this.#violation === undefined ? [] : [this.#violation],
      events: this.#events,
      traceHash: this.#trace.hash,
      virtualMs: this.now,
      ...meter.close(this.scenario, this.topology.diameter, this.faults.length > 0)
    }
  }

  /** Carries out the next event. False if there is none. */
  #step(): boolean {
    const event = this.#event
    if (!this.#queue.pop(event)) return false
    const observer = this.#observer
    this.#events++
    this.now = event.time
    this.#trace.add(event.time, event.kind, event.a)
    observer.event?.(event.time, () => this.#describe(event))
    switch (event.kind) {
      case Kind.Input:
        this.#input(event.a)
        break
      case Kind.Deliver:
        this.transport.arrive(event.a)
        break
      case Kind.Tick:
        this.#queue.push(this.now + this.period, Kind.Tick, event.a, 0, LAST)
        if (this.isUp(event.a)) this.algorithm.tick(event.a)
        break
      case Kind.Timer:
        this.#timer(event.a)
        break
      case Kind.Wake:
        this.#wake(event.a)
        break
      case Kind.Fault:
        if (!this.#calm) this.#fault(this.faults[event.a])
        break
      default:
        throw new RangeError(`no event of kind ${event.kind}`)
    }
    observer.after?.(event.time)
    return true
  }

  #input(node: number): void {
    const { inputs } = this.scenario
    const meter = this.#meter
    if (meter.count >= inputs) return
    this.#queue.push(this.now + this.#pace.intervals[node], Kind.Input, node, 0)
    if (!this.isUp(node)) return
    const examples = this.#inputs.next()
    meter.served(this.now, node, this.algorithm.serving(node), examples)
    this.algorithm.input(node, examples)
    this.#observer.served?.(meter.count)
    if (meter.isPointDue || meter.count === inputs) meter.point(this.algorithm.tally().updates, this.transport.bytes)
  }

  /** Ends all faults and goes on until everything has settled. */
  #quiesce(): void {
    this.#calm = true
    this.transport.calm()
    const { now: time } = this
    this.#observer.event?.(time, () => 'inputs and faults are over: everything must settle')
    this.#fault({ time, kind: 'heal' })
    for (const fault of this.faults) if (fault.kind === 'clog') this.#fault({ ...fault, kind: 'unclog' })
    this.#wiring.restore()
    for (let node = 0; node < this.topology.nodes; node++) {
      this.#fault({ time, kind: 'resume', node })
      this.#fault({ time, kind: 'restart', node, disk: 'kept' })
    }
    const crossing = (this.topology.diameter + 1) * (this.period + 2 * this.latency)
    let violation: Violation | undefined
    for (let crossings = 1; crossings <= SETTLING; crossings++) {
      while (this.#queue.nextTime <= time + crossings * crossing && this.#step());
      violation = this.#wiring.notQuiescent?.() ?? this.#watch?.unsettled(node => this.isUp(node))
      if (violation === undefined) return
    }
    if (violation) throw violation
  }

  #describe({ kind, a }: Event): string {
    switch (kind) {
      case Kind.Input:
        return this.isUp(a) ? `an input at node ${a}` : `no input at node ${a}, which is not running`
      case Kind.Deliver: {
        const { from, to } = this.transport.at(a)
        return `a message from node ${from} reaches node ${to}`
      }
      case Kind.Tick:
        return `a period ends at node ${a}`
      case Kind.Wake:
        return `the overlay of node ${a} looks at its clock`
      case Kind.Timer:
        return `a timer of node ${this.#timers.at(a).node} runs out`
      default: {
        const { time: _time, ...fault } = this.faults[a]
        return `fault ${JSON.stringify(fault)}`
      }
    }
  }

  #areLinked(): boolean {
    const { reach } = this.transport
    return areLinked(
      this.topology.nodes,
      node => this.#wiring.neighbours(node),
      node => this.isUp(node),
      (from, to) => reach.isCut(from, to) || reach.isClogged(from, to)
    )
  }

  #life(node: number): number {
    return node < 0 ? 0 : this.population.life(node)
  }

  #timer(slot: number): void {
    const { node, tag, life } = this.#timers.take(slot)
    if (this.#life(node) === life) this.#injector.whenUp(node, () => this.algorithm.timer(node, tag))
  }

  #wake(node: number): void {
    this.#injector.whenUp(node, () => this.#wiring.wake(node))
  }

  #fault(fault: Fault): void {
    if ('node' in fault && !this.population.apply(fault)) return
    this.#observer.fault?.(this.now, fault)
    this.#periods.changed(this.now)
    this.#injector.strike(fault)
  }
}
