/** Checks whether a peer can protect its inputs with differential privacy, and whether the state directory goes with the options. */
import { OptionError, Privacy, type PrivacyOptions } from '../learning/index.js'
import type { StartedRun, Store } from '../storage/index.js'
import type { PeerOptions } from './options.js'
import type { InitialBudget, StoredBudget } from './privacy-budget.js'

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
