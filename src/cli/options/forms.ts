/** Forms of option values: numbers, times, choices, pairs `key=value`, and entries of a registry with their options. */
import { CommanderError, InvalidArgumentError } from 'commander'
import { type LayerRule, layerEntries } from '../../learning/index.js'
import { type ChoiceOption, type NumberOption, type OptionTable, rangeOf } from '../../learning/options.js'
import type { Parser } from './option.js'

/** A whole number in a range. */
export function whole(least: number, most = Number.MAX_SAFE_INTEGER): (word: string) => number {
  return word => {
    const value = Number(word)
    if (word.trim() !== '' && Number.isSafeInteger(value) && value >= least && value <= most) return value
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
    throw new InvalidArgumentError(`It must be a whole number ${range}.`)
  }
}

/** A finite number, at least 0 or above 0. */
export function amount(above = false): (word: string) => number {
  return word => {
    const value = Number(word)
    if (word.trim() !== '' && Number.isFinite(value) && (above ? value > 0 : value >= 0)) return value
    throw new InvalidArgumentError(`It must be a number ${above ? 'above' : 'of at least'} 0.`)
  }
}

/** A share, from 0 to 1. */
export function share(word: string): number {
  const value = Number(word)
  if (word.trim() !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('It must be a share from 0 to 1, such as 0.05.')
}

/** An option that must not be repeated, because only the last value would count. */
export function once(value: string, previous: string | undefined): string {
  if (previous === undefined) return value
  throw new InvalidArgumentError(`It is given twice (${previous}, ${value}): give one.`)
}

/** A repeatable option. */
export function collect(word: string, previous: readonly string[] | undefined): string[] {
  return [...(previous ?? []), word]
}

/** A time such as `90s`, `15m`, `2h` or `1d`; a number is in seconds. @returns milliseconds */
export function duration(word: string): number {
  const match = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(word)
  const seconds = Number(match?.[1]) * ({ s: 1, m: 60, h: 3600, d: 86_400 }[match?.[2] || 's'] ?? 1)
  if (match && seconds > 0) return 1000 * seconds
  throw new InvalidArgumentError('It must be a time above 0, such as 90s, 15m, 2h or 1d.')
}

/** Comma-separated names. */
export function list(word: string): string[] {
  return word.split(',').filter(name => name !== '')
}

/** The word before pairs `key=value`, if there is one, and the pairs. */
export function split(word: string): readonly [first: string | undefined, pairs: readonly string[]] {
  const [first, ...rest] = word.split(',')
  return first.includes('=') ? [undefined, [first, ...rest]] : [first, rest]
}

type Parsed<Parsers> = { readonly [Key in keyof Parsers]?: Parsers[Key] extends Parser<infer T> ? T : never }

/** The values of pairs `key=value`. */
export function keyed<const Parsers extends Readonly<Record<string, Parser<unknown>>>>(
  pairs: readonly string[],
  parsers: Parsers,
  example: string
): Parsed<Parsers> {
  const found: Record<string, unknown> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    const key = pair.slice(0, Math.max(0, at))
    if (!Object.hasOwn(parsers, key) || Object.hasOwn(found, key))
      throw new InvalidArgumentError(
        `Its keys are ${Object.keys(parsers).join(', ')}, each once, such as ${example}, not '${pair}'.`
      )
    try {
      found[key] = parsers[key](pair.slice(at + 1))
    } catch (error) {
      throw new InvalidArgumentError(`${key}: ${(error as Error).message}`)
    }
  }
  return found as Parsed<Parsers>
}

/** A registry whose entries take options, such as those of update rules and averages. */
type Registry<Name extends string> = Readonly<
  Record<
    Name,
    {
      readonly summary: string
      readonly options: OptionTable<object>
      readonly eightBitState?: string
    }
  >
>

/** A parser of an option's value, with the values that the shell completes. */
export interface Completed<T> {
  (word: string): T
  readonly words: readonly string[]
}

/** Adds the values that the shell completes to a parser. */
export function completed<T>(words: readonly string[], parse: (word: string) => T): Completed<T> {
  return Object.assign(parse, { words })
}

/** Prints the text and ends the command, as `--help` does. */
export function endWith(text: string): never {
  process.stdout.write(text)
  throw new CommanderError(0, 'commander.help', '')
}

/** `NAME` or `NAME,key=value,…` with numbers as values, `true` and `false` apart. `help` prints the registry and the note, and ends. */
export function named<Name extends string>(
  kind: string,
  registry: Registry<Name>,
  note = ''
): Completed<{ readonly name: Name } & Record<string, string | number | boolean>> {
  return completed([...Object.keys(registry), 'help'], text => {
    const [name, ...pairs] = text.split(',').map(part => part.trim())
    if (text === 'help') endWith(registryHelp(registry) + note)
    if (!Object.hasOwn(registry, name)) {
      const names = Object.keys(registry).join(', ')
      throw new InvalidArgumentError(`unknown ${kind} '${name}'; expected one of ${names} (or help).`)
    }
    return { ...pairsOf(pairs, `${name},key=value`), name: name as Name }
  })
}

/** One rule, or a rule for each layer of a network: `LAYERS:NAME,key=value,…;…`. */
export function layered<Rule>(
  rule: Completed<Rule>
): Completed<Rule | { readonly name: 'layers'; readonly rules: readonly LayerRule<Rule>[] }> {
  return completed(rule.words, text => {
    const entries = layerEntries(text)
    if (entries === undefined) return rule(text)
    if (entries.some(({ layers }) => layers === ''))
      throw new InvalidArgumentError(`expected LAYERS:NAME,key=value,…;… with a name, a kind or * for LAYERS.`)
    return { name: 'layers', rules: entries.map(entry => ({ ...entry, rule: rule(entry.rule) })) }
  })
}

/** `key=value` with numbers as values, `true` and `false` apart. @param example for the message */
export function pairsOf(pairs: readonly string[], example: string): Record<string, string | number | boolean> {
  const options: Record<string, string | number | boolean> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw new InvalidArgumentError(`expected options as ${example}, not '${pair}'.`)
    const value = pair.slice(at + 1)
    options[pair.slice(0, at)] = value === 'true' || value === 'false' ? value === 'true' : toNumber(value)
  }
  return options
}

/** Options of rules whose state may have eight bits a number. */
const stateOptions: Readonly<Record<string, ChoiceOption>> = {
  bits: { default: '32', choices: ['8', '32'], help: 'bits of each number of the state' }
}

function registryHelp(registry: Registry<string>): string {
  const entries = Object.entries(registry).map(([name, { summary, options, eightBitState }]) => {
    const all = eightBitState === undefined ? options : { ...options, ...stateOptions }
    const lines = Object.entries(all as Readonly<Record<string, NumberOption | ChoiceOption>>).map(
      ([key, option]) =>
        `    ${key.padEnd(16)} ${option.help}, ${rangeText(option)} (default: ${option.default ?? 'off'})\n`
    )
    return `${name.padEnd(18)} ${summary}\n${lines.join('')}`
  })
  return `${entries.join('\n')}\nGive options as NAME,key=value,…\n`
}

function rangeText(option: NumberOption | ChoiceOption): string {
  return 'choices' in option ? option.choices.join(' or ') : rangeOf(option)
}

function toNumber(text: string): string | number {
  const value = Number(text)
  return text.trim() === '' || Number.isNaN(value) ? text : value
}

/** One of a list of values, which the help lists. */
export function choice<T extends string>(words: readonly T[]): Completed<T> {
  const parse = (word: string) => {
    if (words.includes(word as T)) return word as T
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }
  return Object.assign(completed(words, parse), { choices: words })
}

/** Bytes: `512`, `64KB`, `256MB`, `2GB`, in powers of 1024. */
export function bytes(word: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(B|[KMGT]i?B?)?$/i.exec(word)
  const power = match?.[2] === undefined ? 0 : ' KMGT'.indexOf(match[2][0].toUpperCase())
  const value = Math.floor(Number(match?.[1]) * 1024 ** Math.max(0, power))
  if (match && value > 0) return value
  throw new InvalidArgumentError('It must be bytes, such as 256MB.')
}
