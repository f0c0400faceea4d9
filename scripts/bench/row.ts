/** What a benchmark reports: one row a case, with the figure to reach where there is one. */

export interface Row {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** Whether more or less is better, and how much is enough. */
  readonly target?: { readonly least: number } | { readonly most: number }
  /** Whatever else was measured in the same run. */
  readonly details?: Readonly<Record<string, number | string | readonly number[]>>
}

/** Whether the row reaches its target; undefined where it has none. */
export function met({ value, target }: Row): boolean | undefined {
  if (target === undefined) return undefined
  return 'least' in target ? value >= target.least : value <= target.most
}

/** The middle value, the upper one of two. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]
}
