/**
 * Detection of drift in the progressive loss: delay and false alarms on streams whose changes are known, on numbers without any
 * change, and on elec2, where interstate trade began at row 17,426.
 */
import { Adwin, PageHinkley } from '../../src/learner/drift/index.js'
import { type DriftTest, driftTests, type Examples, type PredictWith, SerialTrainer } from '../../src/learner/index.js'
import { Random } from '../../src/streams/random.js'
import { publicData } from './data.js'
import { runAdmb } from './processes.js'
import { median, type Row } from './row.js'

const SEEDS = 20
const INPUTS = 40_000
const COLUMNS = 10
/** Share of wrong labels. */
const NOISE = 0.1
/** An alarm that comes later after a change counts as false. */
const LATEST = 5000

/** Share of the second concept at an input. */
type Scenario = (input: number) => number

const scenarios: Readonly<Record<string, { readonly share: Scenario; readonly changes: readonly number[] }>> = {
  'no change': { share: () => 0, changes: [] },
  abrupt: { share: i => Number(i >= 20_000), changes: [20_000] },
  'gradual, over 4,000 inputs': { share: i => (i - 20_000) / 4000, changes: [20_000] },
  'recurring, every 8,000 inputs': { share: i => Math.floor(i / 8000) % 2, changes: [8000, 16_000, 24_000, 32_000] }
}

/** The first concept, and a second one that disagrees with it on half of the inputs. */
function streamOf(share: Scenario, seed: number): Examples {
  const random = new Random(seed)
  const labels = new Float32Array(INPUTS)
  const values = new Float32Array(INPUTS * COLUMNS)
  for (let i = 0; i < INPUTS; i++) {
    const row = values.subarray(i * COLUMNS, (i + 1) * COLUMNS)
    for (let c = 0; c < COLUMNS; c++) row[c] = 2 * random.uniform() - 1
    const score = random.uniform() < share(i) ? row[0] - row[1] : row[0] + row[1]
    labels[i] = Number(random.uniform() < NOISE ? score < 0 : score > 0)
  }
  const offsets = Int32Array.from({ length: INPUTS + 1 }, (_, i) => i * COLUMNS)
  const indices = Int32Array.from({ length: INPUTS * COLUMNS }, (_, i) => i % COLUMNS)
  return { size: INPUTS, labels, offsets, indices, values }
}

function alarmsOf(examples: Examples, test: DriftTest, predictWith: PredictWith): number[] {
  const forgets = predictWith === 'current'
  const rule = forgets ? ({ name: 'adagrad', forget: 0.003 } as const) : undefined
  const trainer = new SerialTrainer({ model: 'logistic', dimension: COLUMNS, predictWith, rule })
  trainer.watchDrift(test)
  trainer.learn(examples)
  return (trainer.drift?.recent ?? []).map(({ inputs }) => inputs)
}

/** Delays of the changes that were noticed, and the number of other alarms. */
function judge(alarms: readonly number[], changes: readonly number[]) {
  const delays = changes.flatMap(change => {
    const first = alarms.find(alarm => alarm > change && alarm <= change + LATEST)
    return first === undefined ? [] : [first - change]
  })
  return { delays, others: alarms.length - delays.length }
}

function* synthetic(): Generator<Row> {
  for (const [name, { share, changes }] of Object.entries(scenarios)) {
    const streams = Array.from({ length: SEEDS }, (_, seed) => streamOf(share, seed + 1))
    for (const test of driftTests) {
      for (const predictWith of ['average', 'current'] as const) {
        const judged = streams.map(stream => judge(alarmsOf(stream, test, predictWith), changes))
        const delays = judged.flatMap(one => one.delays)
        const others = judged.reduce((sum, one) => sum + one.others, 0)
        const rate = (others * 1e5) / (SEEDS * INPUTS)
        const what = `${name}: ${test}, ${predictWith}`
        if (changes.length === 0) {
          yield { name: `${what}: false alarms`, value: rate, unit: 'per 100,000 inputs' }
          continue
        }
        const details = {
          noticed: `${delays.length} of ${SEEDS * changes.length}`,
          latest: Math.max(...delays),
          'other alarms per 100,000 inputs': rate
        }
        yield { name: `${what}: median delay`, value: median(delays), unit: 'inputs', details }
      }
    }
  }
}

/** The detectors alone on errors of constant probability: the share of runs of 10,000 values with any alarm. */
function* constant(): Generator<Row> {
  for (const p of [0.01, 0.1, 0.3, 0.5]) {
    const alarms = { adwin: 0, both: 0, 'page-hinkley': 0 }
    for (let seed = 1; seed <= 100; seed++) {
      const random = new Random(seed)
      const adwin = new Adwin()
      const pageHinkley = new PageHinkley()
      let [cut, rose, alarmed] = [false, false, false]
      for (let i = 0; i < 10_000; i++) {
        const value = Number(random.uniform() < p)
        adwin.add({ count: 1, sum: value, squares: value })
        const change = adwin.shrink()
        cut ||= change !== undefined
        rose ||= change !== undefined && change.after > change.before
        alarmed ||= pageHinkley.add(value) !== undefined
      }
      alarms.both += Number(cut)
      alarms.adwin += Number(rose)
      alarms['page-hinkley'] += Number(alarmed)
    }
    const details = { 'adwin, also falls': alarms.both, 'page-hinkley': alarms['page-hinkley'] }
    yield { name: `errors of probability ${p}: runs with an alarm of adwin`, value: alarms.adwin, unit: '%', details }
  }
}

/** Rows of elec2 after which prices of the neighbouring state vary: its market opened. */
const OPENED = 17_425

interface Watched {
  readonly accuracy: number
  readonly drift: { readonly alarms: number; readonly recent: readonly { readonly inputs: number }[] }
}

async function* elec2(): AsyncGenerator<Row> {
  const data = publicData('elec2.csv.gz')
  if (!data) return
  for (const test of driftTests) {
    for (const flags of [[], ['--predict-with', 'current', '--rule', 'adagrad,forget=0.01']]) {
      const all = ['train', '--data', data, '--label', 'class', '--drift', test, ...flags]
      const { accuracy, drift } = await runAdmb<Watched>(all)
      const first = await runAdmb<Watched>([...all, '--limit', String(OPENED + LATEST)])
      const after = first.drift.recent.map(({ inputs }) => inputs - OPENED).find(delay => delay > 0)
      const details = { 'accuracy in %': 100 * accuracy, 'delay after the market opened': after ?? 'not noticed' }
      yield {
        name: `elec2: ${test}${flags.length > 0 ? ', forgets' : ''}`,
        value: drift.alarms,
        unit: 'alarms',
        details
      }
    }
  }
}

export async function* bench(): AsyncGenerator<Row> {
  yield* constant()
  yield* synthetic()
  yield* elec2()
}
