/**
 * The registry of custom losses and update rules from plug-ins. They are referenced by name, because a spec is plain data: it is
 * sent to the learner thread, stored, and compared between peers. Names start with `custom:` to avoid conflicts with built-in
 * names.
 */
import { OptionError } from './options.js'
import type { Blocks, Layout, UpdateRule } from './types.js'

/** Name of a part of a plug-in. */
export type CustomName = `custom:${string}`

/** The loss of a model with one score, w·x. It must be convex in the score for the regret bounds to hold. */
export interface CustomLoss {
  /** Whether labels are the classes 0 and 1; otherwise they are numbers. */
  readonly classifies: boolean
  value(score: number, label: number): number
  /** Derivative of `value` by the score. */
  slope(score: number, label: number): number
  /** Probability of class 1, or the predicted number. @default 0 or 1 by the score's sign, or the score */
  predict?(score: number): number
}

/** Options other than the name are passed to the rule's factory. They must be equal on all peers. */
export interface CustomRuleSpec {
  readonly name: CustomName
  readonly [option: string]: unknown
}

/** The result of a rule's factory: an `UpdateRule` without name and description, which are derived from the spec. */
export interface CustomRule {
  /** @default no state */
  stateLayout?(parameters: Layout): Layout
  step: UpdateRule['step']
}
/** Creates a custom update rule from its options. */
export type CustomRuleFactory = (options: Readonly<Record<string, unknown>>) => CustomRule

const losses = new Map<string, CustomLoss>()
const rules = new Map<string, CustomRuleFactory>()

export function isCustomName(name: string): name is CustomName {
  return name.startsWith('custom:')
}

/** @param name with `custom:` */
export function addLoss(name: CustomName, loss: CustomLoss): void {
  losses.set(name, loss)
}

/** @param name with `custom:` */
export function addRule(name: CustomName, factory: CustomRuleFactory): void {
  rules.set(name, factory)
}

/** @throws OptionError if no plug-in provides it */
export function customLoss(name: CustomName): CustomLoss {
  const loss = losses.get(name)
  if (loss === undefined) throw unknown('loss', name, losses)
  return loss
}

/** @throws OptionError if no plug-in provides it, or it violates the contract of rules */
export function customRule({ name, ...options }: CustomRuleSpec): UpdateRule {
  const factory = rules.get(name)
  if (factory === undefined) throw unknown('rule', name, rules)
  const { stateLayout, step } = factory(options)
  const sorted = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1))
  const description = `${name}(${sorted.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')})`
  const rule = { name, description, stateLayout: stateLayout ?? (() => ({ blocks: [] })), step }
  checkRule(rule)
  return rule
}

/** Tests the rule on a model with four weights, because a violation of the contract would break the network later. */
function checkRule(rule: UpdateRule): void {
  const layout = { blocks: [{ name: 'weights', length: 4 }] }
  const invalid = (what: string) => new OptionError(`rule ${rule.name}: ${what}`)
  const lengths = rule.stateLayout(layout).blocks.map(({ length }) => length)
  const previous = {
    parameters: [Float32Array.of(0, 1, -1, 2)],
    state: lengths.map(length => new Float32Array(length))
  }
  const sum = [Float32Array.of(0.5, -0.25, 0, 1)]
  const before = bits([previous.parameters, previous.state, sum])
  const [first, second] = [rule.step(previous, sum, 2, 0), rule.step(previous, sum, 2, 0)]
  if (!fits(first.parameters, [4]) || !fits(first.state, lengths)) {
    throw invalid('step must return parameters and state as Float32Arrays with the lengths given by stateLayout')
  }
  if (bits([previous.parameters, previous.state, sum]) !== before) throw invalid('step must not write to its arguments')
  if (bits([first.parameters, first.state]) !== bits([second.parameters, second.state])) {
    throw invalid('step must return the same bits for the same arguments, on every machine')
  }
  if (![...first.parameters, ...first.state].every(block => block.every(Number.isFinite))) {
    throw invalid('step returned a number that is not finite')
  }
}

function fits(blocks: Blocks, lengths: readonly number[]): boolean {
  const isBlock = (block: unknown, k: number) => block instanceof Float32Array && block.length === lengths[k]
  return Array.isArray(blocks) && blocks.length === lengths.length && blocks.every(isBlock)
}

function bits(groups: readonly Blocks[]): string {
  return groups.flatMap(blocks => blocks.map(block => new Uint32Array(block.slice().buffer).join(' '))).join()
}

function unknown(kind: string, name: string, known: ReadonlyMap<string, unknown>): OptionError {
  const names = [...known.keys()].join(', ') || 'none'
  return new OptionError(`unknown ${kind} '${name}' (known: ${names}): load the plug-in that provides it`)
}
