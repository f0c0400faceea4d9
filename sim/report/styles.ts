/** Colours and dashes of lines: what was varied can be seen from them, and an algorithm looks the same in every report. */
import type { Group } from './groups.js'
import { colour, DASHES, SERIES } from './theme.js'

export interface Style {
  readonly colour: string
  readonly dash: readonly number[]
}

type Value = string | number | boolean

const ALGORITHM_COLOURS: Readonly<Record<Value & string, string>> = {
  admb: colour('series-1'),
  'admb-sender': colour('series-6'),
  serial: colour('series-7'),
  isolated: colour('series-2'),
  dmb: colour('series-3'),
  mawo: colour('series-5'),
  'mawo-election': colour('series-4'),
  'mawo-database': colour('series-8')
}

/**
 * A style for each line. Where one key was varied, colours stand for its values. Where two were, and one of them has few
 * values, dashes stand for that one. Otherwise each line has the next colour.
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
  return groups.map(({ varied }) => ({
    colour:
      coloured === 'algorithm'
        ? (ALGORITHM_COLOURS[String(varied.algorithm)] ?? colour('ink'))
        : SERIES[valuesOf(coloured).indexOf(varied[coloured])],
    dash: dashed === undefined ? DASHES[0] : DASHES[valuesOf(dashed).indexOf(varied[dashed])]
  }))
}
