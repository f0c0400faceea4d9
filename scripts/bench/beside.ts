/**
 * Speed and memory of this checkout beside those of another commit in one run. The programs run in turns, because the speed of a
 * shared machine changes by the minute. `DIR` is a checkout in which `npm ci` has run:
 *
 *     git worktree add --detach DIR 8b72c5d4 && (cd DIR && npm ci) && npm run -s bench -- beside DIR
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { publicData, syntheticLibsvm } from './data.js'
import { runAdmb } from './processes.js'
import { median, type Row } from './row.js'

const RUNS = 5
/** Copies of a9a: 350 MB of text. */
const COPIES = 150
const A9A_ROWS = 32_561

interface Output {
  /** Events of a simulation. */
  readonly events?: number
  readonly seconds?: number
}

/** One side of the comparison. */
interface Side {
  readonly name: 'here' | 'there'
  readonly main: string | undefined
}

/** @param dir another checkout, built */
export async function* bench(dir: string): AsyncGenerator<Row> {
  const { bin } = JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as { bin: { admb: string } }
  const sides: Side[] = [
    { name: 'here', main: undefined },
    { name: 'there', main: join(dir, bin.admb) }
  ]
  yield* compare('64 nodes, b = 512', simulation(64, 512), sides)
  yield* compare('1,000 nodes, b = 4,000', simulation(1000, 4000), sides, { min: 100_000 }, { max: 600 })
  yield* alone('10,000 nodes, b = 20,000', simulation(10_000, 20_000))
  yield* training(sides)
}

function simulation(nodes: number, batch: number): string[] {
  const keys = { nodes, batch, algorithm: 'admb', topology: 'tree', degree: 3, stream: 'logistic', dimension: 10 }
  const given = Object.entries({ ...keys, inputs: 200_000, checks: false }).map(([key, value]) => `${key}=${value}`)
  return ['sim', 'run', '--set', ...given]
}

/** Runs of each side, in turns. */
async function inTurns(args: readonly string[], sides: readonly Side[]) {
  const runs = sides.map(({ name }) => ({ name, outputs: [] as Awaited<ReturnType<typeof runAdmb<Output>>>[] }))
  for (let run = 0; run < RUNS; run++)
    for (const [side, { main }] of sides.entries()) runs[side].outputs.push(await runAdmb<Output>(args, [], main))
  return runs
}

async function* compare(
  what: string,
  args: readonly string[],
  sides: readonly Side[],
  events?: Row['target'],
  memory?: Row['target']
): AsyncGenerator<Row> {
  const [here, there] = await inTurns(args, sides)
  const figures = { here: here.outputs.map(({ cpu }) => cpu), there: there.outputs.map(({ cpu }) => cpu) }
  yield {
    name: `simulation, ${what}: CPU time over that of the other commit`,
    value: median(figures.here) / median(figures.there),
    unit: '×',
    target: { max: 1 },
    details: figures
  }
  const speeds = here.outputs.map(({ events = 0, seconds = 0 }) => events / seconds)
  yield {
    name: `simulation, ${what}: events a second`,
    value: median(speeds),
    unit: '/s',
    ...(events && { target: events })
  }
  const memories = [here, there].map(({ outputs }) => Math.max(...outputs.map(output => output.memory)))
  yield {
    name: `simulation, ${what}: peak memory`,
    value: memories[0],
    unit: 'MB',
    ...(memory && { target: memory }),
    details: { there: memories[1] }
  }
}

/** A simulation that does not fit into memory at earlier commits. */
async function* alone(what: string, args: readonly string[]): AsyncGenerator<Row> {
  const { seconds = 0, memory, cpu } = await runAdmb<Output>(args)
  yield { name: `simulation, ${what}: time`, value: seconds, unit: 's', target: { max: 120 }, details: { cpu } }
  yield { name: `simulation, ${what}: peak memory`, value: memory, unit: 'MB', target: { max: 3000 } }
}

async function* training(sides: readonly Side[]): AsyncGenerator<Row> {
  const scratch = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  try {
    const a9a = publicData('a9a.libsvm.gz')
    const text = a9a ? gunzipSync(await readFile(a9a)) : syntheticLibsvm(A9A_ROWS)
    const data = join(scratch, 'copies.libsvm')
    await writeFile(data, Buffer.concat(Array.from({ length: COPIES }, () => text)))
    const [here, there] = await inTurns(['train', '--data', data], sides)
    const walls = { here: here.outputs.map(({ wall }) => wall), there: there.outputs.map(({ wall }) => wall) }
    const details = { ...walls, cpu: [here, there].map(({ outputs }) => median(outputs.map(({ cpu }) => cpu))) }
    const name = `admb train, ${COPIES} copies of ${a9a ? 'a9a' : 'generated rows'}: time over that of the other commit`
    yield { name, value: median(walls.here) / median(walls.there), unit: '×', target: { max: 1 }, details }
  } finally {
    await rm(scratch, { recursive: true })
  }
}
