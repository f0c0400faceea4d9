/**
 * Losses and update rules that a program brings along. They are known by name, like ours, because a spec is plain data: it
 * crosses to the learner thread, is stored, and is compared with that of other peers. Names begin with `custom:`, so that ours
 * never come into their way.
 */
import { OptionError } from './errors.js'
import type { Blocks, Layout, UpdateRule } from './types.js'

export type CustomName = `custom:${string}`

/** The loss of a model with one score, w·x: convex in the score, or no theorem holds. */
export interface CustomLoss {
  /** Whether labels are the classes 0 and 1, or numbers. */
  readonly classifies: boolean
  value(score: number, label: number): number
  /** Derivative of `value` by the score. */
  slope(score: number, label: number): number
  /** Probability of class 1, or the predicted number. Default: 0 or 1 by the score's sign, or the score itself. */
  predict?(score: number): number
}

/** Options beside the name are handed to the rule's factory; peers must agree on them. */
export interface CustomRuleSpec {
  readonly name: CustomName
  readonly [option: string]: unknown
}

/** What a factory of rules returns: see `UpdateRule`, of which name and description are made from the spec. */
export interface CustomRule {
  /** Default: no state. */
  stateLayout?(parameters: Layout): Layout
  step: UpdateRule['step']
}
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

/** @throws OptionError if no plug-in has it */
export function customLoss(name: CustomName): CustomLoss {
  const loss = losses.get(name)
  if (loss === undefined) throw unknown('loss', name, losses)
  return loss
}

/** @throws OptionError if no plug-in has it, or it breaks the contract of rules */
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

/** Tries the rule on a model of four weights: what breaks the contract would break the network later, and unseen. */
function checkRule(rule: UpdateRule): void {
  const layout = { blocks: [{ name: 'weights', length: 4 }] }
  const wrong = (what: string) => new OptionError(`rule ${rule.name}: ${what}`)
  const lengths = rule.stateLayout(layout).blocks.map(({ length }) => length)
  const previous = {
    parameters: [Float32Array.of(0, 1, -1, 2)],
    state: lengths.map(length => new Float32Array(length))
  }
  const sum = [Float32Array.of(0.5, -0.25, 0, 1)]
  const before = bits([previous.parameters, previous.state, sum])
  const [first, second] = [rule.step(previous, sum, 2, 0), rule.step(previous, sum, 2, 0)]
  if (!fits(first.parameters, [4]) || !fits(first.state, lengths)) {
    throw wrong('step must return parameters and state as Float32Arrays of the lengths that stateLayout tells')
  }
  if (bits([previous.parameters, previous.state, sum]) !== before) throw wrong('step must not write to its arguments')
  if (bits([first.parameters, first.state]) !== bits([second.parameters, second.state])) {
    throw wrong('step must give the same bits for the same arguments, on every machine')
  }
  if (![...first.parameters, ...first.state].every(block => block.every(Number.isFinite))) {
    throw wrong('step gave a number that is not finite')
  }
}

function fits(blocks: Blocks, lengths: readonly number[]): boolean {
  const isBlock = (block: unknown, k: number) => block instanceof Float32Array && block.length === lengths[k]
  return Array.isArray(blocks) && blocks.length === lengths.length && blocks.every(isBlock)
}

function bits(groups: readonly Blocks[]): string {
  return groups.flatMap(blocks => blocks.map(block => Buffer.from(block.slice().buffer).toString('hex'))).join()
}

function unknown(kind: string, name: string, known: ReadonlyMap<string, unknown>): OptionError {
  const names = [...known.keys()].join(', ') || 'none'
  return new OptionError(`there is no ${kind} ${name}: load the plug-in that provides it (known: ${names})`)
}
