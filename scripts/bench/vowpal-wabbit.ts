/** Vowpal Wabbit and `admb train` on the same rows, as whole commands in turns: time, CPU time and progressive loss of each. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { arch, availableParallelism, cpus, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { publicData, syntheticLibsvm } from './data.js'
import { MAIN } from './processes.js'
import { median, type Row } from './row.js'

const RUNS = 7
const A9A_ROWS = 32_561
/** Rows of a9a in each form: as indices for both programs, and with words as names, which both programs hash. */
const FORMS = {
  libsvm: (text: string) => text,
  vw: (text: string) => text.replace(/^(\S+) /gm, '$1 | '),
  words: (text: string) => text.replace(/^(\S+) /gm, '$1 | ').replace(/(\d+):1/g, (_, index) => `feature_${index}`)
}

type Form = keyof typeof FORMS

/** What each program reads, and the ratio to reach. */
const WORKS: readonly { copies: number; ours: Form; theirs: Form; min: number }[] = [
  { copies: 30, ours: 'libsvm', theirs: 'vw', min: 2 },
  { copies: 30, ours: 'vw', theirs: 'vw', min: 1.5 },
  { copies: 30, ours: 'words', theirs: 'words', min: 1.5 },
  { copies: 150, ours: 'libsvm', theirs: 'vw', min: 3 },
  { copies: 150, ours: 'vw', theirs: 'vw', min: 2.5 }
]

interface Run {
  readonly wall: number
  /** Seconds of all threads. */
  readonly cpu: number
  readonly loss: number
}

/** @param vw path of the program, version 8 or later */
export async function* besideVw(vw: string): AsyncGenerator<Row> {
  const details = { processor: cpus()[0]?.model.trim() ?? 'unknown', os: `${platform()} ${arch()}` }
  const version = spawnSync(vw, ['--version'], { encoding: 'utf8' }).stdout.split('\n')[0]
  const versions = { node: process.versions.node, vw: version }
  yield { name: 'machine', value: availableParallelism(), unit: 'cores', details: { ...details, ...versions } }
  const scratch = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  try {
    const a9a = publicData('a9a.libsvm.gz')
    const text = (a9a ? gunzipSync(await readFile(a9a)) : syntheticLibsvm(A9A_ROWS)).toString()
    const name = a9a ? 'a9a' : 'generated rows like a9a'
    for (const { copies, ours, theirs, min } of WORKS) {
      const paths: Partial<Record<Form, string>> = {}
      for (const form of new Set([ours, theirs])) {
        paths[form] = join(scratch, `copies.${form === 'libsvm' ? form : 'vw'}`)
        await writeFile(paths[form], Buffer.concat(Array(copies).fill(Buffer.from(FORMS[form](text)))))
      }
      const what = ours === theirs ? ours : `${ours} for admb, ${theirs} for VW`
      yield* compare(`${copies} copies of ${name}, ${what}`, vw, paths[theirs] as string, paths[ours] as string, min)
    }
  } finally {
    await rm(scratch, { recursive: true })
  }
}

async function* compare(what: string, vw: string, theirs: string, ours: string, min: number): AsyncGenerator<Row> {
  const runs = { vw: [] as Run[], admb: [] as Run[] }
  for (let run = 0; run < RUNS; run++) {
    runs.vw.push(timed([vw, '--no_stdin', '--loss_function', 'logistic', '-d', theirs], /average loss = (\S+)/))
    const admb = [process.execPath, MAIN, 'train', '--model', 'logistic', '--data', ours, '--json']
    runs.admb.push(timed(admb, /"averageLoss":([^,}]+)/))
  }
  const medians = (key: keyof Run) => [median(runs.vw.map(run => run[key])), median(runs.admb.map(run => run[key]))]
  const [[vwWall, wall], [vwCpu, cpu], [vwLoss, loss]] = [medians('wall'), medians('cpu'), medians('loss')]
  const walls = { vw: runs.vw.map(({ wall }) => wall), admb: runs.admb.map(({ wall }) => wall) }
  yield {
    name: `${what}: time of VW over that of admb`,
    value: vwWall / wall,
    unit: '×',
    target: { min },
    details: walls
  }
  const details = { vw: vwCpu, admb: cpu }
  yield { name: `${what}: CPU time of VW over that of admb`, value: vwCpu / cpu, unit: '×', details }
  yield {
    name: `${what}: progressive loss`,
    value: loss,
    unit: 'nats',
    target: { max: vwLoss },
    details: { vw: vwLoss }
  }
}

/** Runs a command. @param pattern finds the loss in its output */
function timed(command: readonly string[], pattern: RegExp): Run {
  const script = 'TIMEFORMAT="%R %U %S"; time "$@" 2>&1'
  const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', ...command], { encoding: 'utf8' })
  const found = pattern.exec(stdout)
  if (found === null) throw new Error(`${command.join(' ')} printed no loss: ${stdout || stderr}`)
  const [wall, user, system] = stderr.trim().split(/\s+/).slice(-3).map(Number)
  return { wall, cpu: user + system, loss: Number(found[1]) }
}
