/** The processes of the soak test as the attacker uses them. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { generateNetworkKey } from '../../src/network/keys.js'
import type { Limits } from '../../src/network/limits.js'
import type { Target } from './attack.js'
import type { Figures, Start } from './peer-process.js'

const file = fileURLToPath(new URL('./peer-process.js', import.meta.url))
/** Time limit for an answer in ms; after it, the process counts as dead. */
const answerMs = 30_000

export class Scene {
  readonly target: Target
  readonly #victim: ChildProcess
  readonly #neighbours: ChildProcess

  private constructor(target: Target, victim: ChildProcess, neighbours: ChildProcess) {
    this.target = target
    this.#victim = victim
    this.#neighbours = neighbours
  }

  static async start(withKey: boolean, limits: Partial<Limits>): Promise<Scene> {
    const networkKey = withKey ? Buffer.from(generateNetworkKey()).toString('base64') : undefined
    const [victim, listening] = await startProcess({ role: 'victim', networkKey, addresses: [], limits })
    const { addresses, http } = listening as { addresses: string[]; http?: string }
    const [neighbours] = await startProcess({ role: 'neighbours', networkKey, addresses: [addresses[0]], limits })
    const target = {
      tcpPort: portOf(addresses.find(address => !address.includes('/ws'))),
      webSocketPort: portOf(addresses.find(address => address.includes('/ws'))),
      httpPort: http === undefined ? undefined : Number(new URL(http).port)
    }
    return new Scene(target, victim, neighbours)
  }

  /** How the victim exited, or undefined while it runs. */
  get death(): string | undefined {
    const { exitCode, signalCode } = this.#victim
    return exitCode === null && signalCode === null ? undefined : `the victim ended with ${exitCode ?? signalCode}`
  }

  victim(): Promise<Figures> {
    return ask(this.#victim)
  }

  neighbours(): Promise<Figures> {
    return ask(this.#neighbours)
  }

  stop(): void {
    for (const child of [this.#neighbours, this.#victim]) {
      if (child.connected) child.disconnect()
    }
  }
}

async function startProcess(start: Start): Promise<[ChildProcess, unknown]> {
  const child = fork(file, { execArgv: ['--expose-gc'] })
  child.send(start)
  const [ready] = await once(child, 'message', { signal: AbortSignal.timeout(answerMs) })
  return [child, ready]
}

async function ask(child: ChildProcess): Promise<Figures> {
  const answer = once(child, 'message', { signal: AbortSignal.timeout(answerMs) })
  child.send('figures')
  return (await answer)[0] as Figures
}

function portOf(address = ''): number {
  return Number(/\/tcp\/(\d+)/.exec(address)?.[1])
}
