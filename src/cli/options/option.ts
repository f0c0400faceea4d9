/** What an option of the command line is: one row, from which its flag, value, help, configuration key and completion follow. */
import { type Command, Option } from 'commander'

/** Headings of `--help`, in this order. */
export const GROUPS = [
  'Inputs',
  'Columns',
  'Features',
  'Learning',
  'Networks',
  'Execution',
  'Search',
  'Text',
  'Exchange',
  'Peers',
  'Access',
  'State',
  'HTTP',
  'Output'
] as const
export type Group = (typeof GROUPS)[number]

/** Settings that a value is passed on as: of reading, of the columns of a table, of the task, its execution, or the peer. */
export type Place = 'read' | 'table' | 'task' | 'execution' | 'peer'

/** Parses a word. `previous` is the value of the same option before it on the command line. */
// biome-ignore lint/suspicious/noExplicitAny: a parser knows the type of its own values
export type Parser<T> = (word: string, previous?: any) => T

interface Details<Value = unknown, Where extends string = string> {
  readonly group: Group
  /** Commands that have the option; those of `sim` by both words. */
  readonly for: readonly Where[]
  /** Whether only `--help-all` lists it. */
  readonly rare?: boolean | undefined
  /** The value without the option. Defaults that the library shares are in the task and the peer instead. */
  readonly default?: Value
  readonly required?: boolean
  readonly in?: Place | readonly Place[] | undefined
  /** The name of the setting. @default the name of the option */
  readonly as?: string
  /** Whether the value consists of several settings. */
  readonly spreads?: boolean
}

export interface Row<Name extends string = string, Value = unknown, Where extends string = string>
  extends Details<unknown, Where> {
  /** Long name, also in configuration files. `no-` begins the name of a switch that is on without it. */
  readonly name: Name
  /** Placeholder of the value with its form or unit, such as `<file>`; undefined for a switch. */
  readonly unit?: string
  readonly parse?: Parser<Value>
  readonly help: string
}

/** A row with a value. */
export function value<const Name extends string, Value, const D extends Details<Value>>(
  name: Name,
  unit: string,
  parse: Parser<Value>,
  help: string,
  details: D
): Row<Name, Value, D['for'][number]> & D {
  return { name, unit, parse, help, ...details }
}

/** A row without a value. */
export function flag<const Name extends string, const D extends Details>(
  name: Name,
  help: string,
  details: D
): Row<Name, boolean, D['for'][number]> & D {
  return { name, help, ...details }
}

/** The text itself. */
export function text(word: string): string {
  return word
}

type Camel<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name
type KeyOf<R extends Row> = R['name'] extends `no-${infer Positive}` ? Camel<Positive> : Camel<R['name']>
type ValueOf<R extends Row> = R extends Row<string, infer Value, string> ? Value : never
/** The rows of a command. */
type Of<R, Where extends string> = R extends Row ? (Where & R['for'][number] extends never ? never : R) : never
type IsGiven<R> = R extends { readonly required: true } | { readonly default: unknown } ? true : false

/** The values of the options of a command, or of several commands. */
export type FlagsOf<R extends Row, Where extends string = string> = {
  readonly [One in Of<R, Where> as IsGiven<One> extends true ? never : KeyOf<One>]?: ValueOf<One>
} & { readonly [One in Of<R, Where> as IsGiven<One> extends true ? KeyOf<One> : never]: ValueOf<One> }

/** The row of each option, and the words that were given for it. */
const known = new WeakMap<Option, { readonly row: Row; readonly words: string[] }>()

/** Adds the options of a command, by group. */
export function addRows(command: Command, name: string, rows: readonly Row[]): Command {
  const own = rows.filter(row => row.for.includes(name))
  for (const group of GROUPS) for (const row of own) if (row.group === group) command.addOption(optionOf(row))
  return command
}

function optionOf(row: Row): Option {
  const { name, unit, parse, group, default: standard, required = false } = row
  const option = new Option(unit === undefined ? `--${name}` : `--${name} ${unit}`, helpOf(row))
  option.helpGroup(`${group}:`).makeOptionMandatory(required)
  if (standard !== undefined) option.default(standard)
  if (unit?.startsWith('[')) option.preset('true')
  const words: string[] = []
  known.set(option, { row, words })
  if (parse === undefined) return option
  const recording = (word: string, previous: unknown) => {
    words.push(word)
    return parse(word, previous)
  }
  // A parser carries the words that completion offers.
  return option.argParser(Object.assign(recording, parse))
}

/** What the option does, after the words that it takes, and its default. */
export function helpOf({ parse, help, default: standard }: Row): string {
  const { choices = [] } = (parse ?? {}) as { readonly choices?: readonly string[] }
  const about = help === '' || help.startsWith('(') || choices.length === 0 ? help : `: ${help}`
  const words = choices.join(', ')
  const text = words === '' || about === '' || about.startsWith(':') ? words + about : `${words} ${about}`
  return standard === undefined ? text : `${text} (default: ${standard})`
}

/** The row of an option; undefined for those of the parser itself, such as `--help`. */
export function rowOf(option: Option): Row | undefined {
  return known.get(option)?.row
}

/** The values of a configuration file that stands for the options that were given. */
export function givenTo(command: Command, isWanted: (row: Row) => boolean): Record<string, unknown> {
  const entries = command.options.flatMap(option => {
    const { row, words } = known.get(option) ?? {}
    const key = option.attributeName()
    if (row === undefined || !isWanted(row) || command.getOptionValueSource(key) === 'default') return []
    const value = command.getOptionValue(key)
    if (value === undefined) return []
    return [[row.name.replace(/^no-/, ''), words?.length ? (words.length === 1 ? words[0] : words) : value]]
  })
  return Object.fromEntries(entries)
}
