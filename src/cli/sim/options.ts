/** The options of `admb sim`, apart from the table of the others because the simulator's names take time to load. */
import { algorithmNames } from '../../../sim/index.js'
import { type FlagsOf, flag, text, value } from '../options/option.js'
import { rows as common } from '../options/table.js'
import { amount, collect, completed, list, whole } from '../options/values.js'

const RUNS = ['sim run', 'sim compare', 'sim sweep'] as const
const algorithms = completed(algorithmNames, list)
const scenario = { group: 'Inputs' } as const
const search = { group: 'Search' } as const
const output = { group: 'Output' } as const

const own = [
  value(
    'set',
    '<key=value...>',
    collect,
    'keys of the scenario; nested keys with a dot, such as faults.crashShare=0.1',
    {
      ...scenario,
      for: RUNS
    }
  ),
  value('algorithms', '<list>', algorithms, 'algorithms separated by commas (default: all)', {
    ...scenario,
    for: ['sim compare']
  }),
  value(
    'over',
    '<key=values...>',
    collect,
    'a key and its values: separated by commas, or a range FROM..TO of whole numbers',
    {
      ...scenario,
      for: ['sim sweep']
    }
  ),
  value('algorithms', '<list>', algorithms, 'the same as --over algorithm=LIST', { ...scenario, for: ['sim sweep'] }),
  value('inputs', '<n>', whole(1000), 'inputs per run', { ...scenario, for: ['sim experiment'], default: 1_000_000 }),
  flag('quick', 'use a tenth of the inputs', { ...scenario, for: ['sim experiment'] }),
  value('runs', '<n>', whole(1), 'number of runs', { ...search, for: ['sim fuzz'], default: 1000 }),
  value('seed', '<n>', whole(0), 'seed of the random scenarios', { ...search, for: ['sim fuzz'], default: 1 }),
  value('until', '<ms>', amount(), 'stop at this virtual time', { ...search, for: ['sim replay'] }),
  value('node', '<n>', whole(0), 'show only events that change this node', { ...search, for: ['sim replay'] }),
  value('report', '<dir>', text, 'write a report: a page with plots, the plots as SVG, and the data as CSV and JSON', {
    ...output,
    for: [...RUNS, 'sim experiment']
  }),
  value('out', '<file>', text, 'file for the finished runs, as JSON lines (default: sweep-….jsonl)', {
    ...output,
    for: ['sim sweep']
  }),
  value('out', '<file>', text, 'file for a violation, for replay (default: fuzz-SEED.json)', {
    ...output,
    for: ['sim fuzz']
  }),
  flag('resume', 'continue: skip the runs that the file already has', { ...output, for: ['sim sweep'] })
] as const

export const simRows = [...own, ...common]

/** Values of the options of a command of `sim`. */
export type SimFlags<Where extends string = (typeof RUNS)[number]> = FlagsOf<(typeof simRows)[number], Where>
