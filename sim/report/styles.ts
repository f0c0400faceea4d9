/** Colours, shapes and dashes of lines, by the varied keys. An algorithm has the same colour and shape in every report. */
import { algorithms } from '../index.js'
import type { Group } from './groups.js'
import { DASHES, SERIES, SHAPES } from './theme.js'

export interface Style {
  readonly colour: string
  /** Of its marks, by which lines differ that lie on each other. */
  readonly shape: string
  readonly dash: readonly number[]
}

type Value = string | number | boolean

/**
 * A style for each line. If one key was varied, colours and shapes show its values. If two were varied and one has few values,
 * dashes show that one. Otherwise each line has the next colour.
 */
export function stylesOf(groups: readonly Group[]): Style[] {
  const keys = [...new Set(groups.flatMap(({ varied }) => Object.keys(varied)))]
  const valuesOf = (key: string): Value[] => [...new Set(groups.map(({ varied }) => varied[key]))]
  const isFull = groups.every(({ varied }) => Object.keys(varied).length === keys.length)
  const [coloured, dashed] = keys.sort(
    (a, b) => Number(b === 'algorithm') - Number(a === 'algorithm') || valuesOf(b).length - valuesOf(a).length
  )
  const fits = keys.length === 1 || (keys.length === 2 && valuesOf(dashed).length <= DASHES.length)
  if (!isFull || !fits || valuesOf(coloured).length > SERIES.length)
    return groups.map((_, index) => styleOf(index % SERIES.length, Math.floor(index / SERIES.length) % DASHES.length))
  return groups.map(({ varied, runs }) =>
    styleOf(
      coloured === 'algorithm'
        ? algorithms[runs[0].scenario.algorithm].series - 1
        : valuesOf(coloured).indexOf(varied[coloured]),
      dashed === undefined ? 0 : valuesOf(dashed).indexOf(varied[dashed])
    )
  )
}

function styleOf(series: number, dash: number): Style {
  return { colour: SERIES[series], shape: SHAPES[series], dash: DASHES[dash] }
}
