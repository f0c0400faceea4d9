/**
 * A rule for each layer of a network (heterogeneous optimisation): the layers of a group are stepped by the rule of the group, with
 * the bits that they would have as a model of their own.
 */
import { OptionError } from '../options.js'
import type { BlockLayout, Blocks, Layout, UpdateRule } from '../types.js'

/** An entry of a list of rules. */
export interface LayerRule<Rule> {
  /** Name or kind of layers, in which `*` stands for any characters. */
  readonly layers: string
  readonly rule: Rule
}

/** The entries of `LAYERS:RULE;LAYERS:RULE;…`, of which one without LAYERS has an empty name; undefined for one rule of all layers. */
export function layerEntries(text: string): readonly LayerRule<string>[] | undefined {
  if (!/[:;]/.test(text)) return undefined
  return text.split(';').map(entry => {
    const at = entry.lastIndexOf(':')
    return { layers: entry.slice(0, Math.max(0, at)).trim(), rule: entry.slice(at + 1).trim() }
  })
}

/** Layers listed in messages. */
const LISTED = 12

/**
 * The first entry that fits a layer.
 * @throws OptionError if none does
 */
export function firstFor<Rule>(rules: readonly LayerRule<Rule>[], block: BlockLayout): LayerRule<Rule> {
  const found = rules.find(({ layers }) => fits(layers, block))
  if (found) return found
  throw new OptionError(`rule: the layer ${titleOf(block)} has none: add one for the rest, such as *:adam`)
}

function fits(pattern: string, { name, kind = '' }: BlockLayout): boolean {
  return matches(pattern, name) || (kind !== '' && matches(pattern, kind))
}

/** Without backtracking: the pattern may come from the network that a peer joins. */
function matches(pattern: string, text: string): boolean {
  const [first, ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === text
  let at = first.length
  const end = text.length - last.length
  if (!text.startsWith(first) || !text.endsWith(last) || at > end) return false
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

function titleOf({ name, kind }: BlockLayout): string {
  return kind === undefined ? name : `${name} (${kind})`
}

interface Group<Rule> {
  /** Number of its entry. */
  readonly n: number
  readonly rule: Rule
  /** Its layers. */
  readonly indices: readonly number[]
}

/** The groups that have layers. Blocks that predictors carry are not layers. */
function groupsOf<Rule>(rules: readonly LayerRule<Rule>[], { blocks }: Layout): readonly Group<Rule>[] {
  const entries = blocks.map(block => (block.isExact ? undefined : firstFor(rules, block)))
  return rules
    .map((entry, n) => ({ n, rule: entry.rule, indices: [...entries.keys()].filter(k => entries[k] === entry) }))
    .filter(({ indices }) => indices.length > 0)
}

function chosenFrom(blocks: readonly BlockLayout[], indices: readonly number[]): Layout {
  return { blocks: indices.map(k => blocks[k]) }
}

/** @throws OptionError naming an entry that fits no layer, and the layers that there are, or one behind others */
function checkNames<Rule>(rules: readonly LayerRule<Rule>[], { blocks }: Layout): void {
  const layers = blocks.filter(({ isExact }) => !isExact)
  // First, because a misspelt entry may leave layers without a rule.
  const unknown = rules.find(rule => !layers.some(block => fits(rule.layers, block)))
  if (unknown !== undefined) {
    const listed = layers.slice(0, LISTED).map(titleOf).join(', ')
    const rest = layers.length > LISTED ? `, and ${layers.length - LISTED} more` : ''
    const advice = `give names, kinds or patterns of ${listed}${rest}`
    throw new OptionError(`rule: no layer that is trained fits '${unknown.layers}': ${advice}`)
  }
  const used = new Set(layers.map(block => firstFor(rules, block)))
  const hidden = rules.find(rule => !used.has(rule))
  if (hidden === undefined) return
  const why = `earlier entries fit all layers of '${hidden.layers}': put it before them, or remove it`
  throw new OptionError(`rule: ${why}`)
}

/**
 * The rule of all layers. Its state consists of the states of the groups, one after another.
 * @param create a rule for the layers of a group
 * @param layout of the parameters; without it, the rule can be described but not applied
 * @throws OptionError for an entry without layers, and a layer without a rule
 */
export function layerRule<Rule>(
  rules: readonly LayerRule<Rule>[],
  create: (rule: Rule, layout?: Layout) => UpdateRule,
  layout: Layout | undefined
): UpdateRule {
  const parts = rules.map(({ rule }) => create(rule))
  const listed = (key: 'name' | 'description') => rules.map(({ layers }, n) => `${layers}:${parts[n][key]}`).join(';')
  const stateOf = ({ n, indices }: Group<Rule>, { blocks }: Layout) =>
    parts[n].stateLayout(chosenFrom(blocks, indices)).blocks.map(block => ({ ...block, name: `${n}:${block.name}` }))
  const common = {
    name: listed('name'),
    description: listed('description'),
    parts,
    // Blocks without the names of layers have their places.
    stateLayout: (given: Layout) => {
      const named = layout?.blocks.length === given.blocks.length ? layout : given
      return { blocks: groupsOf(rules, named).flatMap(group => stateOf(group, given)) }
    }
  }
  if (layout === undefined) {
    const step = () => {
      throw new OptionError('a rule for each layer needs the layers of a network: give one rule (--rule NAME)')
    }
    return { ...common, step }
  }
  checkNames(rules, layout)
  let end = 0
  const groups = groupsOf(rules, layout).map(group => {
    const start = end
    end += stateOf(group, layout).length
    return { ...group, rule: create(group.rule, chosenFrom(layout.blocks, group.indices)), start, end }
  })
  const groupOf = layout.blocks.map((_, k) => groups.findIndex(({ indices }) => indices.includes(k)))
  const averaged = groups.filter(({ rule }) => rule.minWeight)
  return {
    ...common,
    step(previous, sum, count, updates, contributors) {
      const parameters = [...previous.parameters] as Float32Array[]
      const state = groups.flatMap(({ rule, indices, start, end }) => {
        const of = (blocks: Blocks) => indices.map(k => blocks[k])
        const before = { parameters: of(previous.parameters), state: previous.state.slice(start, end) }
        const next = rule.step(before, of(sum), count, updates, contributors)
        for (const [i, k] of indices.entries()) parameters[k] = next.parameters[i]
        return next.state
      })
      return { parameters, state }
    },
    // Integer sums take all estimates from rules, or none.
    ...(groups.every(({ rule }) => rule.squares) && {
      squares(state: Blocks, block: number, count: number, updates: number) {
        const { rule, indices, start, end } = groups[groupOf[block]]
        return rule.squares?.(state.slice(start, end), indices.indexOf(block), count, updates)
      }
    }),
    ...(averaged.length > 0 && {
      minWeight: (state: Blocks) =>
        Math.max(...averaged.map(({ rule, start, end }) => rule.minWeight?.(state.slice(start, end)) ?? 0))
    })
  }
}
