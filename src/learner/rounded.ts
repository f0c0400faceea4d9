/** Recipes whose predictors consist of numbers with few bits (`src/base/numbers.ts`). */
import type { Averaging, Layout, RoundedBlocks, UpdateRule } from './types.js'

/** Shorter blocks are not rounded: they take few bytes. */
const MIN_LENGTH = 1024

/**
 * @param layout of the parameters
 * @param least length of the shortest blocks that are rounded @default 1024
 */
export function roundedRecipe<R extends { readonly rule: UpdateRule; readonly averaging: Averaging }>(
  recipe: R,
  layout: Layout,
  least = MIN_LENGTH
): R & { readonly rounded: RoundedBlocks } {
  const isRounded = ({ blocks }: Layout) => blocks.map(({ length, isExact }) => length >= least && !isExact)
  const { rule, averaging } = recipe
  const rounded = {
    parameters: isRounded(layout),
    average: isRounded(averaging.layout?.(layout) ?? layout),
    state: isRounded(rule.stateLayout(layout))
  }
  return { ...recipe, rounded }
}
