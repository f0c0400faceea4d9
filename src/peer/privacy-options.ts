/** Which peers can protect their inputs with differential privacy, and whether the state directory goes with the options. */
import { OptionError, Privacy, type PrivacyOptions } from '../learner/index.js'
import type { StartedRun, Store } from '../storage/index.js'
import { growingNames } from '../task/learning-spec.js'
import type { PeerOptions } from './options.js'
import type { InitialBudget, StoredBudget } from './privacy-budget.js'

/** @throws OptionError if the guarantee would not hold */
export function checkPrivacy({ dp, dir, spec, predictWith }: PeerOptions): void {
  if (dp === undefined) return
  new Privacy(dp)
  const { columns = [], scale } = spec.features
  const refused: readonly (readonly [is: boolean, reason: string])[] = [
    [dir === undefined, 'the budget must survive a restart: give a state directory (--dir)'],
    [spec.network !== undefined, 'networks do not clip the gradient of each input: use a linear model'],
    [spec.localSteps !== undefined, 'local steps mix inputs: remove --local-steps'],
    [growingNames(spec) !== undefined, 'names of new classes are sent without noise: remove --classes ..MAX'],
    [predictWith === 'ahead', 'look-ahead predictions contain own gradients without noise: remove --predict-with'],
    [scale === 'standard', 'moments of the data are in all gradients: give --scale none, or a --schema that scales'],
    [columns.some(({ kind }) => kind === 'lag'), 'lags are in the gradients of several inputs: remove --lag']
  ]
  for (const [is, reason] of refused) if (is) throw new OptionError(`--dp: ${reason}`)
}

/** The budget with which a run starts. @throws OptionError if the state directory belongs to other options */
export async function initialBudget(
  { dp, dir }: PeerOptions,
  store: Store | undefined,
  run: StartedRun | undefined
): Promise<InitialBudget | undefined> {
  const text = await store?.privacy()
  const stored = text === undefined ? undefined : (JSON.parse(text) as StoredBudget)
  if (dp === undefined) {
    if (stored === undefined) return undefined
    throw new OptionError(`${dir} protects its inputs: give --dp ${textOf(stored.options)}, or another --dir`)
  }
  const hasLearned = run?.checkpoint !== undefined || (run?.journal.records.length ?? 0) > 0
  if (stored === undefined && hasLearned) {
    throw new OptionError(`${dir} has learned inputs without --dp: give a new --dir, or remove --dp`)
  }
  const { options } = new Privacy(dp)
  if (stored === undefined || textOf(stored.options) === textOf(options)) return { options, stored }
  throw new OptionError(`${dir} has a budget of ${textOf(stored.options)}: give --dp with these values, or a new --dir`)
}

function textOf({ epsilon, delta, clip, releases }: Required<PrivacyOptions>): string {
  return `epsilon=${epsilon},delta=${delta},clip=${clip}${releases === 1 ? '' : `,releases=${releases}`}`
}
