/** The rows that a benchmark reports, with optional targets. */

export interface Row {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** Lower or upper limit of the value. */
  readonly target?: { readonly min: number } | { readonly max: number }
  /** Other measurements of the same run. */
  readonly details?: Readonly<Record<string, number | string | readonly number[]>>
}

/** Whether the row meets its target; undefined without one. */
export function met({ value, target }: Row): boolean | undefined {
  if (target === undefined) return undefined
  return 'min' in target ? value >= target.min : value <= target.max
}

/** The median; of an even number of values the upper one. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]
}
