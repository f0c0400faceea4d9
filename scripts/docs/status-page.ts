/** The page of all fields of a status and of the network, and of all metrics, from the schemas. */
import { Registry } from 'prom-client'
import * as z from 'zod'
import type { PeerStatus } from '../../src/peer/index.js'
import { watch } from '../../src/server/routes/metrics.js'
import { schemas } from '../../src/server/schemas.js'

interface Schema {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
}

const HEAD = `# Status and metrics

The fields of statuses in JSON: \`admb peer --json\`, \`admb status --json\`, \`status()\` of the
[library](library.md), and [HTTP](http.md). Fields in _italics_ may be absent.
A field that several objects of a section have is listed once. \`npm run docs\` writes this page.
`

/** Markdown: a table for each kind of object, and one of the metrics. */
export async function statusPage(): Promise<string> {
  const sections = [
    ['Status of a peer', '`GET /status`', schemas.Status],
    ['Row of a peer', '`peers` of `GET /peers`', schemas.PeerRow],
    ['Totals of the network', '`network` of `GET /peers`', schemas.Network]
  ] as const
  const tables = sections.map(([title, where, type]) => {
    const schema = z.toJSONSchema(type) as Schema
    return `## ${title}\n\n${where}. ${schema.description}\n\n| field | type | meaning |\n| --- | --- | --- |\n${fields(schema).join('')}`
  })
  return [HEAD, ...tables, await metrics()].join('\n')
}

/** @param seen fields so far: the figures of windows have the same */
function fields(
  { properties = {}, required = [] }: Schema,
  path = '',
  isSure = true,
  seen = new Set<string>()
): string[] {
  return Object.entries(properties).flatMap(([key, field]) => {
    const known = `${key} ${field.description}`
    if (field.description !== undefined && seen.has(known)) return []
    seen.add(known)
    const isPresent = isSure && required.includes(key)
    const name = isPresent ? `\`${path}${key}\`` : `_\`${path}${key}\`_`
    const line = `| ${name} | ${typeOf(field)} | ${(field.description ?? '').replaceAll('|', '\\|')} |\n`
    const [inner, below] = field.items ? [field.items, `${path}${key}[].`] : [field, `${path}${key}.`]
    return [line, ...fields(inner, below, isPresent, seen)]
  })
}

function typeOf({ type, const: value, enum: values, items, anyOf }: Schema): string {
  if (value !== undefined) return `\`${JSON.stringify(value)}\``
  if (values) return values.map(each => `\`${JSON.stringify(each)}\``).join(', ')
  if (items) return `array of ${typeOf(items)}`
  return type ?? [...new Set((anyOf ?? []).map(each => each.type))].join(', ')
}

async function metrics(): Promise<string> {
  const register = new Registry()
  watch({ status: () => ({}) as PeerStatus }, register)
  const rows = register
    .getMetricsAsArray()
    .map(({ name, help, type }) => `| \`${name}\` | ${String(type)} | ${help.replaceAll('|', '\\|')} |\n`)
  return `## Metrics

\`GET /metrics\`, in the format of Prometheus. \`admb_recent_…\` have the label \`window\`: \`1000\` and \`10000\` inputs, or times such
as \`1m\` and \`1h\`. \`admb_sum_bytes_total\` has the label \`kind\`: \`sums\`, \`steps\`, whole \`predictors\`, \`other\`. Besides these there
are \`admb_http_request_duration_seconds\`, by method, route and status, and \`process_…\` and \`nodejs_…\` of the Prometheus client.

| metric | type | meaning |
| --- | --- | --- |
${rows.join('')}`
}
