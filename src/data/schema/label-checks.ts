/** What of the labels of the first rows is refused, or could be wrong. */
import { importance, type Notice } from '../../base/errors.js'
import { SchemaError } from '../errors.js'
import type { TextFormat } from '../formats/formats.js'
import { shortened } from '../formats/labels.js'
import type { LabelSchema } from '../types.js'

/** Numbers of classes as texts of several labels write them. */
const SEVERAL = /^\d+([,;|]\d+)+$/
/** VW's labels of contextual bandits, `action:cost:probability`, and of costs by class, `class:cost`. */
const BANDIT = /^\d+:[-+]?[\d.]+(e[-+]?\d+)?(:[\d.]+(e[-+]?\d+)?)?$/i
/** VW's first lines of rows of several lines, and its labels with a word for their kind. */
const VW_WORD = /^(shared|ca|ccb|slates|action|slot)$/
/** Rows from which the order of labels says something. */
const MIN_ORDERED = 50
/** Share of the changes of label that rows in random order have, below which the rows are sorted. */
const SORTED_SHARE = 0.1
/** Whole numbers above this number of classes might be numbers to predict. */
const MANY_CLASSES = 20
/** Different pairs of names from which they are several labels of a row. */
const MIN_COMPOUND = 2

/**
 * @param labels of the first rows, in their order
 * @param what the label in messages
 * @throws SchemaError for several labels a row, and labels of bandits
 */
export function refuseLabels(labels: readonly string[], format: TextFormat, what: string): void {
  const advice = 'give one label a row, or learn each label on its own'
  const different = [...new Set(labels)]
  const several =
    format === 'libsvm' || format === 'vw' ? different.find(label => SEVERAL.test(label)) : severalOf(labels)
  if (several !== undefined) {
    throw new SchemaError(
      `${what} has several labels in a row ("${shortened(several)}"), which is not supported: ${advice}`
    )
  }
  if (format !== 'vw') return
  const bandit = different.find(label => BANDIT.test(label) || VW_WORD.test(label))
  if (bandit === undefined) return
  throw new SchemaError(
    `${what} has "${shortened(bandit)}", as contextual bandits and costs by class write it, which is not supported: give a class or a number`
  )
}

/** A label that consists of others of the column, such as `a|b`; numbers with a decimal comma are none. */
function severalOf(labels: readonly string[]): string | undefined {
  const known = new Set(labels)
  if (known.size > labels.length / 2) return undefined
  const compound = [...known].filter(label => {
    const parts = label.split(/[,;|]/).map(part => part.trim())
    return parts.length > 1 && new Set(parts).size === parts.length && parts.every(part => known.has(part))
  })
  return compound.length >= MIN_COMPOUND ? compound[0] : undefined
}

/**
 * @param labels of the first rows, in their order
 * @param label what they were taken for
 * @param isGiven whether an option says whether they are classes
 * @param shuffleWindow rows in the window of a later shuffle
 */
export function labelNotices(
  labels: readonly string[],
  { kind, names, classes = 0 }: Omit<LabelSchema, 'name'>,
  { isGiven, shuffleWindow }: { readonly isGiven: boolean; readonly shuffleWindow: number },
  what: string
): Notice[] {
  const notices: Notice[] = []
  const add = (line: string, weight: number) => notices.push({ line, importance: weight })
  const isWhole = names === undefined || names.every(name => /^-?\d+$/.test(name))
  const distinct = new Set(labels).size
  if (!isGiven && kind === 'class' && isWhole && (classes > MANY_CLASSES || isGapped(names))) {
    add(
      `${what} has ${distinct} whole numbers, which are taken for classes: give --target number if they are a number`,
      importance.guess
    )
  }
  if (!isGiven && kind === 'number' && distinct <= MANY_NUMBERS && labels.every(label => /^-?\d+$/.test(label))) {
    add(
      `${what} has ${distinct} whole numbers, which are taken for a number: give --target class if they are classes`,
      importance.guess
    )
  }
  const alike = kind === 'class' ? alikeNames(names) : undefined
  if (alike !== undefined) {
    const different = alike.map(name => `"${shortened(name)}"`).join(' and ')
    add(
      `${what}: the classes ${different} differ only in case or spaces: write them alike if they are one class`,
      importance.guess
    )
  }
  const listed = labels.find(label => /^\d+,\d+$/.test(label))
  if (!isGiven && kind === 'number' && listed !== undefined && distinct <= MANY_NUMBERS) {
    add(
      `${what} has values such as "${listed}", which are taken for numbers with a decimal comma: several labels of a row are not learned`,
      importance.guess
    )
  }
  if (2 * shuffleWindow < labels.length && isSorted(labels, kind)) {
    add(
      `${what}: the rows are sorted by it, so figures look better than they are, and the last rows count too much: give --shuffle-window ROWS, at least as many as the file has`,
      importance.useless
    )
  }
  return notices
}

/** The first two names that differ only in case, or in spaces. */
function alikeNames(names: readonly string[] = []): readonly [string, string] | undefined {
  const seen = new Map<string, string>()
  for (const name of names) {
    const form = name.toLowerCase().replace(/\s+/g, ' ').trim()
    const other = seen.get(form)
    if (other !== undefined) return [other, name]
    seen.set(form, name)
  }
  return undefined
}

/** Distinct whole numbers up to which a number could be classes. */
const MANY_NUMBERS = 300
/** Names that are whole numbers, with gaps or far from 0, from which they might be a number. */
const MANY_NAMES = 10

function isGapped(names: readonly string[] | undefined): boolean {
  return names !== undefined && names.length >= MANY_NAMES
}

/** Whether neighbouring rows have equal labels, or numbers in order, so often that it is no chance. */
function isSorted(labels: readonly string[], kind: LabelSchema['kind']): boolean {
  if (labels.length < MIN_ORDERED) return false
  if (kind === 'number') {
    let [up, down] = [0, 0]
    for (let row = 1; row < labels.length; row++) {
      const difference = Number(labels[row]) - Number(labels[row - 1])
      if (difference > 0) up++
      if (difference < 0) down++
    }
    return up + down > 0 && Math.min(up, down) <= 0.01 * (up + down) && up + down >= MIN_ORDERED / 2
  }
  const counts = new Map<string, number>()
  let changes = 0
  for (let row = 0; row < labels.length; row++) {
    counts.set(labels[row], (counts.get(labels[row]) ?? 0) + 1)
    if (row > 0 && labels[row - 1] !== labels[row]) changes++
  }
  let repeats = 0
  for (const count of counts.values()) repeats += (count / labels.length) ** 2
  return counts.size > 1 && changes < SORTED_SHARE * (labels.length - 1) * (1 - repeats)
}
