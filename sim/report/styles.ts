/** Colours and dashes of lines, by the varied keys. An algorithm has the same colour in every report. */
import { algorithms } from '../index.js'
import type { Group } from './groups.js'
import { colour, DASHES, SERIES } from './theme.js'

export interface Style {
  readonly colour: string
  readonly dash: readonly number[]
}

type Value = string | number | boolean

/**
 * A style for each line. If one key was varied, colours show its values. If two were varied and one has few values, dashes show
 * that one. Otherwise each line has the next colour.
 */
export function stylesOf(groups: readonly Group[]): Style[] {
  const keys = [...new Set(groups.flatMap(({ varied }) => Object.keys(varied)))]
  const valuesOf = (key: string): Value[] => [...new Set(groups.map(({ varied }) => varied[key]))]
  const isFull = groups.every(({ varied }) => Object.keys(varied).length === keys.length)
  const [coloured, dashed] = keys.sort(
    (a, b) => Number(b === 'algorithm') - Number(a === 'algorithm') || valuesOf(b).length - valuesOf(a).length
  )
  const fits = keys.length === 1 || (keys.length === 2 && valuesOf(dashed).length <= DASHES.length)
  if (!isFull || !fits || valuesOf(coloured).length > SERIES.length) {
    return groups.map((_, index) => ({
      colour: SERIES[index % SERIES.length],
      dash: DASHES[Math.floor(index / SERIES.length) % DASHES.length]
    }))
  }
  return groups.map(({ varied, runs }) => ({
    colour:
      coloured === 'algorithm'
        ? colour(`series-${algorithms[runs[0].scenario.algorithm].series}`)
        : SERIES[valuesOf(coloured).indexOf(varied[coloured])],
    dash: dashed === undefined ? DASHES[0] : DASHES[valuesOf(dashed).indexOf(varied[dashed])]
  }))
}
