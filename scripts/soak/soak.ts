/** Attacks a peer in phases and measures the effect on its process and its neighbours. */
import { Random } from '../../sim/engine/random.js'
import type { Limits } from '../../src/network/limits.js'
import { type Attack, OpenSockets } from './attack.js'
import { muxerAttacks } from './identity-attacks.js'
import type { Figures } from './peer-process.js'
import { Scene } from './processes.js'
import { anyAttacks, keyAttacks, openAttacks } from './raw-attacks.js'
import { streamAttacks } from './stream-attacks.js'
import { httpAttacks, webSocketAttacks } from './web-attacks.js'

export interface SoakOptions {
  /** Total number of connections and frames. */
  readonly connections: number
  /** Maximum time of all phases together. */
  readonly seconds: number
  readonly seed: number
  /** Whether the victim has its default limits. Otherwise its limits are raised, so that attacks reach the code behind them. */
  readonly defaultLimits: boolean
}

export interface SoakRow {
  readonly mode: 'network key' | 'open'
  readonly phase: string
  readonly count: number
  readonly perSecond: number
  readonly rssMiB: number
  readonly heapMiB: number
  readonly handles: number
  readonly connections: number
  readonly sessions: number
  /** The failure after this phase, if there is one. */
  readonly fault?: string
}

/** Memory that an attack may leave behind, in MiB. Measured: less than half of it. */
const maxGrowthMiB = 64
const neighbours = 3
const parallel = 32
/** Part of the attack that runs before memory is first measured, so that code and pools are warm. */
const warmUp = 0.02
/** Longer than any timeout of a connection, so that all connections of the attack are closed. */
const recoveryMs = 15_000
const raisedLimits: Partial<Limits> = { inboundPerSecond: 1_000_000, connections: 10_000 }

const modes = {
  'network key': { ...anyAttacks, ...keyAttacks, ...webSocketAttacks },
  open: { ...anyAttacks, ...openAttacks, ...muxerAttacks, ...streamAttacks, ...httpAttacks, ...webSocketAttacks }
} as const

export async function* soak(options: SoakOptions): AsyncGenerator<SoakRow> {
  const { connections, seconds } = options
  const phases = Object.values(modes).reduce((sum, attacks) => sum + Object.keys(attacks).length, 0)
  const share = { count: connections / phases, ms: (seconds * 1000) / phases }
  for (const mode of ['network key', 'open'] as const) yield* soakMode(mode, share, options)
}

async function* soakMode(
  mode: SoakRow['mode'],
  share: { readonly count: number; readonly ms: number },
  { seed, defaultLimits }: SoakOptions
): AsyncGenerator<SoakRow> {
  const scene = await Scene.start(mode === 'network key', defaultLimits ? {} : raisedLimits)
  try {
    const random = new Random(seed, mode)
    const attacks: Readonly<Record<string, Attack>> = modes[mode]
    for (const attack of Object.values(attacks)) {
      await run(attack, scene, random, { count: warmUp * share.count, ms: warmUp * share.ms + 200 })
    }
    await new Promise(resolve => setTimeout(resolve, recoveryMs))
    const before = await scene.victim()
    yield row(mode, 'before', 0, 0, before, undefined)
    let last = await scene.neighbours()
    for (const [phase, attack] of Object.entries(attacks)) {
      const begin = performance.now()
      const count = await run(attack, scene, random, share)
      const perSecond = (count * 1000) / (performance.now() - begin)
      const [figures, honest] = await figuresOf(scene)
      const fault = scene.death ?? interruption(honest, last)
      yield row(mode, phase, count, perSecond, figures, fault)
      if (honest === undefined || figures === undefined) return
      last = honest
    }
    await new Promise(resolve => setTimeout(resolve, recoveryMs))
    const [after, honest] = await figuresOf(scene)
    const grown = after === undefined ? 0 : (after.rss - before.rss) / 2 ** 20
    const growth =
      grown > maxGrowthMiB ? `memory grew by ${grown.toFixed(1)} MiB, ${maxGrowthMiB} is the most` : undefined
    yield row(mode, 'after', 0, 0, after, scene.death ?? interruption(honest, last) ?? growth)
  } finally {
    scene.stop()
  }
}

/** Repeats an attack in parallel until the count or the time is reached. */
async function run(
  attack: Attack,
  scene: Scene,
  random: Random,
  { count, ms }: { readonly count: number; readonly ms: number }
): Promise<number> {
  const sockets = new OpenSockets()
  const deadline = performance.now() + ms
  let made = 0
  const repeat = async () => {
    while (made < count && performance.now() < deadline && scene.death === undefined) {
      const more = await attack(scene.target, random, sockets)
      made += more
      if (more === 0) await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  await Promise.all(Array.from({ length: parallel }, repeat))
  sockets.release()
  return made
}

async function figuresOf(scene: Scene): Promise<[Figures | undefined, Figures | undefined]> {
  const none = () => undefined
  return [await scene.victim().catch(none), await scene.neighbours().catch(none)]
}

function interruption(now: Figures | undefined, last: Figures): string | undefined {
  if (now === undefined) return 'a process does not answer'
  if (now.interruptions > 0 || now.sessions < neighbours) return `${now.interruptions} sessions were lost`
  return now.frames > last.frames ? undefined : 'no frame got through'
}

function row(
  mode: SoakRow['mode'],
  phase: string,
  count: number,
  perSecond: number,
  figures: Figures | undefined,
  fault: string | undefined
): SoakRow {
  const { rss = 0, heap = 0, handles = 0, connections = 0, sessions = 0 } = figures ?? {}
  const memory = { rssMiB: rss / 2 ** 20, heapMiB: heap / 2 ** 20 }
  const what = { mode, phase, count, perSecond: Math.round(perSecond), ...memory, handles, connections, sessions }
  const silent = figures === undefined ? 'the victim does not answer' : undefined
  const wrong = fault ?? silent
  return wrong === undefined ? what : { ...what, fault: wrong }
}
