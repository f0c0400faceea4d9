/**
 * Named points of compiled code: functions, constants, and members of classes, such as `Edge.sentId`. A piece of code is found by the
 * name of the point that contains it, in whatever file, and however it is formatted.
 */
import { parseAst } from 'vite'

/** A range of a file. */
export interface Place {
  readonly file: string
  readonly start: number
  readonly end: number
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly id?: Node
  readonly key?: Node
  readonly body?: Node | readonly Node[]
  readonly declaration?: Node
  readonly declarations?: readonly Node[]
}

const WORD = /^[\w$#]/

export class NamedPoints {
  readonly #places = new Map<string, Place[]>()
  readonly #code: ReadonlyMap<string, string>

  /** @param code JavaScript by file */
  constructor(code: ReadonlyMap<string, string>) {
    this.#code = code
    for (const [file, text] of code) {
      const nameOf = (node?: Node) => text.slice(node?.start, node?.end)
      const add = (name: string, { start, end }: Node) => {
        this.#places.set(name, [...(this.#places.get(name) ?? []), { file, start, end }])
      }
      for (const statement of parseAst(text).body as unknown as Node[]) {
        const declared = statement.declaration ?? statement
        if (declared.type === 'FunctionDeclaration') add(nameOf(declared.id), declared)
        for (const one of declared.declarations ?? []) add(nameOf(one.id), one)
        if (declared.type !== 'ClassDeclaration') continue
        const { body: members } = declared.body as { readonly body: readonly Node[] }
        for (const member of members) add(`${nameOf(declared.id)}.${nameOf(member.key)}`, member)
      }
    }
  }

  /** @param code part of the point, with any white space @throws Error unless it is there once */
  find(point: string, code: string): Place {
    const places = this.#places.get(point)
    if (places === undefined) throw new Error(`no function, constant or member of a class has the name ${point}`)
    const found = places.flatMap(({ file, start, end }) => {
      const matches = (this.#code.get(file) as string).slice(start, end).matchAll(patternOf(code))
      return [...matches].map(({ index, 0: { length } }) => {
        return { file, start: start + index, end: start + index + length }
      })
    })
    if (found.length !== 1) throw new Error(`expected 1 match in ${point}, found ${found.length}: ${code}`)
    return found[0]
  }
}

/** Words and signs of code, with any white space between them. */
function patternOf(code: string): RegExp {
  const tokens = code.match(/[\w$#]+|[^\s\w$#]/g) ?? []
  const parts = tokens.map((token, i) => {
    const escaped = token.replaceAll(/[^\w]/g, '\\$&')
    const space = i === 0 ? '' : WORD.test(token) && WORD.test(tokens[i - 1]) ? '\\s+' : '\\s*'
    return space + (WORD.test(token) ? `(?<![\\w$#])${escaped}(?![\\w$#])` : escaped)
  })
  return new RegExp(parts.join(''), 'g')
}
