/** Applies faults to the network, the nodes and their sessions. */
import type { Transport } from '../network/transport.js'
import type { StopCause, Wiring } from '../wiring/wiring.js'
import type { Algorithm, DiskState } from '../world.js'
import type { Fault, NodeFault, Population } from './schedule.js'

/** The parts of a run that faults affect. */
interface Targets {
  readonly population: Population
  readonly transport: Transport
  readonly wiring: Wiring
  readonly algorithm: Algorithm
  /** Current identities of the nodes; changed when a node loses its disk. */
  readonly labels: string[]
}

export class FaultInjector {
  readonly #targets: Targets
  /** Identities at the start. */
  readonly #identities: readonly string[]
  /** Timer actions of paused processes, run when they resume. */
  readonly #postponed = new Map<number, (() => void)[]>()

  constructor(targets: Targets) {
    this.#targets = targets
    this.#identities = [...targets.labels]
  }

  /** @param fault if it concerns a node, one that `Population.apply` has accepted */
  inject(fault: Fault): void {
    const { transport, wiring } = this.#targets
    const { reachability } = transport
    switch (fault.kind) {
      case 'partition':
        reachability.partition(fault)
        transport.release()
        break
      case 'heal':
        reachability.heal()
        transport.release()
        break
      case 'clog':
        reachability.clog(fault.from, fault.to)
        wiring.drip?.(fault.from, fault.to, fault.drips === true)
        break
      case 'unclog':
        wiring.drip?.(fault.from, fault.to, false)
        reachability.unclog(fault.from, fault.to)
        transport.release()
        break
      case 'link':
        wiring.link(fault.from, fault.to)
        break
      case 'unlink':
        wiring.unlink(fault.from, fault.to)
        break
      default:
        this.#injectNodeFault(fault)
    }
  }

  /** Runs an action of a node: now, when its paused process resumes, or never if it is down. */
  runWhenUp(node: number, action: () => void): void {
    const { population } = this.#targets
    if (node < 0 || population.isUp(node)) action()
    else if (population.isPaused(node)) {
      const postponed = this.#postponed.get(node)
      if (postponed === undefined) this.#postponed.set(node, [action])
      else postponed.push(action)
    }
  }

  #injectNodeFault(fault: NodeFault): void {
    const { node } = fault
    switch (fault.kind) {
      case 'crash':
        this.#stop(node, fault.silent ? 'silent' : 'crash')
        break
      case 'leave':
        this.#stop(node, 'leave')
        break
      case 'restart':
        this.#start(node, fault.disk)
        break
      case 'join':
        this.#start(node, 'lost')
        break
      case 'pause':
        this.#targets.wiring.paused?.(node)
        break
      case 'hang':
        this.#targets.wiring.left?.(node)
        break
      case 'unhang':
        this.#targets.wiring.returned?.(node)
        break
      case 'resume': {
        this.#targets.wiring.resumed?.(node)
        this.#targets.transport.flushInbox(node)
        const postponed = this.#postponed.get(node) ?? []
        this.#postponed.delete(node)
        for (const action of postponed) action()
        break
      }
      default:
        fault satisfies never
    }
  }

  #stop(node: number, cause: StopCause): void {
    const { transport, wiring, algorithm } = this.#targets
    this.#postponed.delete(node)
    transport.clearInbox(node)
    wiring.stopped(node, cause)
    algorithm.crash(node)
  }

  #start(node: number, disk: DiskState): void {
    const { population, wiring, algorithm, labels } = this.#targets
    const life = population.lifetime(node)
    // The key was on the disk. The new identity is next to the old one in the order of precedence.
    if (disk === 'lost' && life > 0) labels[node] = `${this.#identities[node]}.${life}`
    algorithm.restart(node, disk)
    wiring.started(node)
  }
}
