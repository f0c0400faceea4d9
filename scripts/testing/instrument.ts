/**
 * All mutants of the functions in a TypeScript file in one instrumented program, which calls `$m(id)` to ask whether a mutant is switched
 * on. Errors' arguments and string literals stay, as they are texts, or types check them. Code that runs when its module is loaded stays,
 * since it cannot be switched later.
 */
import { parseAst, transformWithOxc } from 'vite'

export interface Mutant {
  readonly id: number
  readonly file: string
  readonly line: number
  readonly from: string
  readonly to: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const ARITHMETIC: Readonly<Record<string, string>> = { '+': '-', '-': '+', '*': '/', '/': '*', '%': '*' }
const BITS: Readonly<Record<string, string>> = { '<<': '>>', '>>': '<<', '>>>': '<<', '&': '|', '|': '&', '^': '&' }
const RELATIONS: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  in: [],
  instanceof: []
}
const ASSIGNMENTS: Readonly<Record<string, string>> = { '+=': '-=', '-=': '+=', '*=': '/=', '|=': '&=', '&=': '|=' }
/** Methods with their opposite; '' where the call is dropped. */
const METHODS: Readonly<Record<string, string>> = {
  ...{ some: 'every', every: 'some', min: 'max', max: 'min', floor: 'ceil', ceil: 'floor' },
  ...{ filter: '', slice: '', sort: '', reverse: '', toSorted: '' }
}
const TYPED_EXPRESSIONS = ['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']
const RAW = ['ThrowStatement', 'ImportDeclaration', 'ExportSpecifier']
const COMPOUND = /^(?:Logical|Conditional|Binary|Assignment|Await|ArrowFunction|TSAs)Expression$/
const LOOPS = ['WhileStatement', 'DoWhileStatement', 'ForStatement']

/** @param firstId id of the first mutant @returns the code in JavaScript, and its mutants in the order of their ids */
export async function instrument(file: string, source: string, firstId: number) {
  const mutants: Mutant[] = []
  const raw = (node: Node) => source.slice(node.start, node.end)
  /** The tree has no parentheses. */
  const operand = (node: Node) => (COMPOUND.test(node.type) ? `(${raw(node)})` : raw(node))
  let functions = 0

  const add = (node: Node, to: string, from = raw(node)): string => {
    const line = source.slice(0, node.start).split('\n').length
    mutants.push({ id: firstId + mutants.length, file, line, from: short(from), to: short(to) })
    return `$m(${firstId + mutants.length - 1})`
  }

  /** The instrumented text of a node. */
  function visit(node: Node, parent: Node, key: string): string {
    if (RAW.includes(node.type) || isTyping(node)) return raw(node)
    const inFunction = isFunction(node) || (node.type === 'PropertyDefinition' && !node.static)
    if (inFunction) functions++
    const text = statement(node, parent, key) ?? expression(node, parent, key)
    if (inFunction) functions--
    return text
  }

  function inside(node: Node): string {
    let text = ''
    let at = node.start
    for (const [key, child] of childrenOf(node)) {
      text += source.slice(at, child.start) + visit(child, node, key)
      at = child.end
    }
    return text + source.slice(at, node.end)
  }

  function statement(node: Node, parent: Node, key: string): string | undefined {
    // Without an alternative, a condition that is false does the same.
    const isGuarded = parent.type === 'IfStatement' && key === 'consequent' && !parent.alternate
    if (node.type === 'BlockStatement') {
      const isEmpty = (node.body as Node[]).length === 0
      if (isGuarded || isEmpty || functions === 0 || parent.type === 'BlockStatement') return inside(node)
      const switched = add(node, '{}')
      return `{ if (!${switched}) ${inside(node)} }`
    }
    if (node.type !== 'ExpressionStatement') return undefined
    const isAlone = isGuarded || (parent.type === 'BlockStatement' && (parent.body as Node[]).length === 1)
    const isSuper = raw(node).startsWith('super(')
    if (isAlone || isSuper || functions === 0) return `{ ${inside(node)} }`
    const switched = add(node, '')
    return `{ if (!${switched}) { ${inside(node)} } }`
  }

  function expression(node: Node, parent: Node, key: string): string {
    const switches = replacements(node, parent, key).map(to => `${add(node, to)} ? (${to}) : `)
    return switches.length === 0 ? inside(node) : `(${switches.join('')}(${inside(node)}))`
  }

  function replacements(node: Node, parent: Node, key: string): string[] {
    const found = functions > 0 ? [...operators(node), ...conditions(node, parent, key)] : []
    return [...new Set(found)].filter(to => to !== raw(node))
  }

  function operators(node: Node): string[] {
    const { operator, left, right, argument, value, elements, body } = node as unknown as Fields
    switch (node.type) {
      case 'BinaryExpression': {
        if (operator === '+' && [left, right].some(isText)) return []
        const others = RELATIONS[operator] ?? [ARITHMETIC[operator] ?? BITS[operator] ?? []].flat()
        return others.map(other => `${operand(left)} ${other} ${operand(right)}`)
      }
      case 'LogicalExpression':
        if (operator === '??') return [raw(left), raw(right)]
        return [`${operand(left)} ${operator === '&&' ? '||' : '&&'} ${operand(right)}`]
      case 'AssignmentExpression': {
        const other = ASSIGNMENTS[operator] ?? (/^(?:\?\?|\|\||&&)=$/.test(operator) ? '=' : undefined)
        return other === undefined || isText(right) ? [] : [`${raw(left)} ${other} ${raw(right)}`]
      }
      case 'UnaryExpression':
        return ['!', '-', '~'].includes(operator) ? [raw(argument)] : []
      case 'UpdateExpression':
        return [raw(node).replace(operator, operator === '++' ? '--' : '++')]
      case 'Literal':
        if (typeof value === 'boolean') return [String(!value)]
        return typeof value === 'number' ? [String(value + 1)] : []
      case 'ArrayExpression':
        return elements.length > 0 ? ['[]'] : []
      case 'ArrowFunctionExpression':
        return body.type === 'BlockStatement' || body.type === 'Literal' ? [] : ['() => undefined']
      case 'CallExpression':
        return calls(node)
      default:
        return []
    }
  }

  function calls(node: Node): string[] {
    const callee = node.callee as Node
    const property = callee.property as Node | undefined
    const other = callee.type === 'MemberExpression' && property ? METHODS[raw(property)] : undefined
    if (other === undefined || property === undefined || raw(node).includes('?.')) return []
    if (other === '') return [raw(callee.object as Node)]
    return [source.slice(node.start, property.start) + other + source.slice(property.end, node.end)]
  }

  /** Conditions that are always true or false, unless the condition around this one then is so, too. */
  function conditions(node: Node, parent: Node, key: string): string[] {
    if (node.type === 'Literal') return []
    if (key === 'test' && LOOPS.includes(parent.type)) return ['false']
    if (key === 'test' && parent.type !== 'SwitchCase') return ['true', 'false']
    if (parent.type === 'LogicalExpression' && parent.operator !== '??')
      return key === 'left' || isBoolean(node) || isCondition(parent)
        ? [parent.operator === '&&' ? 'true' : 'false']
        : []
    return isBoolean(node) ? ['true', 'false'] : []
  }

  /** Nodes that are tests, or parts of them. */
  const tests = new Set<Node>()
  const isCondition = (node: Node) => tests.has(node)
  const program = parseAst(source, { lang: 'ts' }) as unknown as Node
  collectTests(program, tests)
  const { code } = await transformWithOxc(inside(program), file, { lang: 'ts', target: 'es2022', sourcemap: false })
  return { code, mutants }
}

interface Fields {
  readonly operator: string
  readonly left: Node
  readonly right: Node
  readonly argument: Node
  readonly value: unknown
  readonly elements: readonly unknown[]
  readonly body: Node
}

function collectTests(node: Node, tests: Set<Node>, isTest = false): void {
  if (isTest) tests.add(node)
  const isPassedOn = isTest && node.type === 'LogicalExpression'
  for (const [key, child] of childrenOf(node)) collectTests(child, tests, isPassedOn || key === 'test')
}

function* unordered(node: Node): Iterable<readonly [string, Node]> {
  for (const [key, value] of Object.entries(node)) {
    if (key === 'key' && !node.computed) continue
    if (node.type === 'NewExpression' && key === 'arguments' && isError(node.callee as Node)) continue
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) yield [key, child]
  }
}

function childrenOf(node: Node): readonly (readonly [key: string, child: Node])[] {
  return [...unordered(node)].sort(([, a], [, b]) => a.start - b.start)
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

function isTyping({ type }: Node): boolean {
  return type.startsWith('TS') && !TYPED_EXPRESSIONS.includes(type)
}

function isFunction({ type }: Node): boolean {
  return ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(type)
}

function isError({ name }: Node): boolean {
  return typeof name === 'string' && /Error$|^Violation$/.test(name)
}

function isText({ type, value }: Node): boolean {
  return type === 'TemplateLiteral' || typeof value === 'string'
}

function isBoolean({ type, operator }: Node): boolean {
  return (
    (type === 'BinaryExpression' && String(operator) in RELATIONS) ||
    (type === 'LogicalExpression' && operator !== '??')
  )
}

function short(code: string): string {
  const text = code.replaceAll(/\s+/g, ' ')
  return text.length <= 100 ? text : `${text.slice(0, 70)} … ${text.slice(-25)}`
}
