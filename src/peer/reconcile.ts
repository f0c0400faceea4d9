/** Compares the data of a joining peer with the schema of the network: what differs and can be read is a notice, a contradiction an error. */
import { importance, type OnNotice } from '../base/errors.js'
import type { ColumnSchema } from '../data/index.js'
import { OptionError } from '../learning/index.js'
import { type LearningSpec, predictsNumbers } from '../task/learning-spec.js'

/** Kinds whose values are texts. */
const TEXTS: ReadonlySet<string> = new Set(['category', 'text'])
const MAX_NAMES = 5

/**
 * @param own what the data of the peer determines alone
 * @param source name of the data
 * @throws OptionError for a column or a label that is a number on one side and a text on the other
 */
export function reconcile(network: LearningSpec, own: LearningSpec, source: string, onNotice: OnNotice): void {
  const [theirs, ours] = [network.features, own.features]
  const columns = new Map(ours.columns?.map(column => [column.name, column]))
  const label = { network: theirs.label ?? 'label', own: ours.label ?? 'label' }
  if (label.own !== label.network) {
    const isFeature = theirs.columns?.some(({ name, kind }) => name === label.own && kind !== 'ignored')
    if (isFeature || columns.has(label.network))
      throw new OptionError(
        `${source}: the network predicts "${label.network}", and --label is "${label.own}": give --label ${label.network}`
      )
    onNotice(
      `${source}: its label "${label.own}" is learned as the network's label "${label.network}"`,
      importance.contradiction
    )
  }
  const contradictions = (theirs.columns ?? []).flatMap(column => {
    const other = columns.get(column.name)
    const problem = other && contradiction(column, other)
    return problem ? [`"${column.name}" is ${problem}`] : []
  })
  if (contradictions.length > 0)
    throw new OptionError(
      `${source}: ${contradictions.slice(0, MAX_NAMES).join('; ')}: rename the column, or leave it to --ignore on all peers`
    )
  const kinds = [predictsNumbers(network), predictsNumbers(own)].map(isNumber => (isNumber ? 'a number' : 'a class'))
  if (kinds[0] !== kinds[1])
    throw new OptionError(
      `${source}: the label is ${kinds[0]} in the network, and ${kinds[1]} here: give another --label`
    )
  const known = new Set(theirs.classNames)
  const unknown = ours.classNames?.filter(name => !known.has(name)) ?? []
  if (theirs.classNames && unknown.length > 0)
    onNotice(
      `${source}: the network does not know ${unknown.length === 1 ? 'the class' : 'the classes'} ${unknown.slice(0, MAX_NAMES).join(', ')}: its rows are skipped (start the network with --classes ..MAX to add classes)`,
      importance.leftOut
    )
}

function contradiction(network: ColumnSchema, own: ColumnSchema): string | undefined {
  if (network.role !== undefined || own.role !== undefined) return undefined
  const isNumber = (kind: string) => kind === 'number' || kind === 'time'
  if (isNumber(network.kind) && TEXTS.has(own.kind)) return `a ${network.kind} in the network, and a ${own.kind} here`
  if (network.kind === 'text' && isNumber(own.kind)) return `a text in the network, and a ${own.kind} here`
  return undefined
}
