/** What a peer logs when its node does not accept something of another peer. */
import type { Effect } from '../admb/index.js'
import { describeQuarantined } from './trust.js'

type Warned = Extract<Effect, { readonly kind: 'rejected' | 'quarantined' | 'unlisted' | 'excessive' | 'excluded' }>

export function warningOf(effect: Warned): string {
  switch (effect.kind) {
    case 'rejected': {
      const { updates, origin } = effect.predictor.id
      return `refused a predictor from ${effect.from} (update ${updates}, computed by ${origin}): on recent inputs it is worse than the current one`
    }
    case 'quarantined':
      return describeQuarantined(effect)
    case 'unlisted':
      return `sums of ${effect.from} are not used: they contain gradients of ${effect.contributor}, which is not on the allow-list`
    case 'excessive':
      return `gradients that ${effect.from} sends are not used: their contributors claim more than --trust bounded,rate=N allows`
    case 'excluded':
      return `${effect.maker} has signed two different updates with one name: nothing of it is accepted any more`
    default:
      return effect satisfies never
  }
}
