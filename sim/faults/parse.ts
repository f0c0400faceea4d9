/** Fault schedules from outside, such as the files that `admb sim fuzz` writes, checked before they run. */
import { z } from 'zod'
import { ScenarioError } from '../scenario.js'
import type { Fault } from './schedule.js'

/** @param nodes of the scenario that the schedule is for */
function schemaOf(nodes: number) {
  const time = z.number().min(0)
  const node = z
    .int()
    .min(0)
    .max(nodes - 1)
  const link = { from: node, to: node }
  const of = <K extends Fault['kind'], S extends z.ZodRawShape>(kind: K, fields: S) =>
    z.strictObject({ time, kind: z.literal(kind), ...fields })
  return z.discriminatedUnion('kind', [
    of('crash', { node, silent: z.boolean().optional() }),
    of('restart', { node, disk: z.enum(['kept', 'lost']) }),
    of('pause', { node }),
    of('resume', { node }),
    of('join', { node }),
    of('leave', { node }),
    of('partition', { sides: z.array(z.int().min(0)), oneWay: z.boolean() }),
    of('heal', {}),
    of('clog', link),
    of('unclog', link),
    of('link', link),
    of('unlink', link)
  ]) satisfies z.ZodType<Fault>
}

/**
 * @param source what to name in errors
 * @throws ScenarioError
 */
export function parseFaults(value: unknown, nodes: number, source: string): Fault[] {
  const parsed = z.array(schemaOf(nodes)).safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const [index, ...path] = issue.path
  const given = Array.isArray(value) && typeof index === 'number' ? ` (given: ${JSON.stringify(value[index])})` : ''
  const place =
    index === undefined ? 'faults' : `faults[${String(index)}]${path.map(key => `.${String(key)}`).join('')}`
  throw new ScenarioError(`${source}: ${place}: ${issue.message}${given}`)
}
