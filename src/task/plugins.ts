/**
 * Plug-ins: modules with custom losses, rules, layers and readers. Functions cannot be sent to the learner thread, so a plug-in is
 * a module that both threads import, and specs name its parts as `custom:NAME`. Peers compare digests of the modules' files,
 * because a name must mean the same code to all of them.
 */

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import * as z from 'zod'
import { CodedError } from '../base/errors.js'
import { addReader, type CustomReaderFactory } from '../data/index.js'
import { addLoss, addRule, type CustomLoss, type CustomRuleFactory } from '../learning/index.js'
import { type CustomLayerFactory, registerCustomLayer } from '../nn/layers/custom-kinds.js'

/** The export `plugin` of a plug-in module. */
export interface Plugin {
  readonly losses?: Readonly<Record<string, CustomLoss>>
  readonly rules?: Readonly<Record<string, CustomRuleFactory>>
  readonly layers?: Readonly<Record<string, CustomLayerFactory>>
  readonly readers?: Readonly<Record<string, CustomReaderFactory>>
}

/** A module that cannot be loaded, or is not a plug-in. */
export class PluginError extends CodedError {
  static override readonly code = 'ERR_PLUGIN'
}

/** Created on demand, because most peers have no plug-ins. */
function pluginSchema(): z.ZodType {
  const called = z.custom<(...values: never[]) => unknown>(value => typeof value === 'function', 'must be a function')
  const parts = <T extends z.ZodType>(part: T) =>
    z
      .record(z.string().regex(/^[a-z][\w-]*$/i, 'is not a name: give a letter, then letters, digits, dashes'), part)
      .optional()
  return z.strictObject({
    losses: parts(z.looseObject({ classifies: z.boolean(), value: called, slope: called, predict: called.optional() })),
    rules: parts(called),
    layers: parts(called),
    readers: parts(called)
  })
}

/** The module that registered each name in this thread. */
const owners = new Map<string, string>()

/**
 * Registers the parts of the modules in this thread. Loading a module again does nothing.
 * @param modules paths, or `file:` URLs
 * @returns the digests that peers compare; undefined if the modules hold only readers, which need not agree
 * @throws PluginError
 */
export async function loadPlugins(modules: readonly string[]): Promise<string | undefined> {
  const digests: string[] = []
  for (const module of modules) {
    const url = module.startsWith('file:') ? new URL(module) : pathToFileURL(module)
    const digest = await digestOf(url, module)
    const plugin = await load(url, module)
    add(plugin, `${url}#${digest}`, module)
    if (plugin.losses || plugin.rules || plugin.layers) digests.push(digest)
  }
  return digests.length === 0 ? undefined : digests.sort().join(',')
}

async function digestOf(url: URL, module: string): Promise<string> {
  try {
    return createHash('sha256')
      .update(await readFile(url))
      .digest('hex')
      .slice(0, 16)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new PluginError(`plug-in ${module} cannot be read (${code}): give the path of a module or a file: URL`)
  }
}

async function load(url: URL, module: string): Promise<Plugin> {
  let loaded: { readonly plugin?: unknown }
  try {
    loaded = await import(url.href)
  } catch (error) {
    throw new PluginError(`plug-in ${module} does not load: ${(error as Error).message}`)
  }
  if (loaded.plugin === undefined) {
    throw new PluginError(
      `${module} is not a plug-in: it must export const plugin = { losses, rules, layers, readers }`
    )
  }
  const parsed = pluginSchema().safeParse(loaded.plugin)
  // The export itself, because the parsed copy has lost its methods' `this`.
  if (parsed.success) return loaded.plugin as Plugin
  const [{ path, message }] = parsed.error.issues
  throw new PluginError(`plug-in ${module}: ${['plugin', ...path].join('.')}: ${message}`)
}

function add({ losses, rules, layers, readers }: Plugin, owner: string, module: string): void {
  const each = <T>(
    kind: string,
    named: Readonly<Record<string, T>> = {},
    put: (name: `custom:${string}`, part: T) => void
  ) => {
    for (const [name, part] of Object.entries(named)) {
      const before = owners.get(`${kind} ${name}`)
      if (before === owner) continue
      if (before !== undefined) {
        throw new PluginError(`plug-in ${module}: the ${kind} ${name} is already registered by ${before}: rename one`)
      }
      owners.set(`${kind} ${name}`, owner)
      put(`custom:${name}`, part)
    }
  }
  each('loss', losses, addLoss)
  each('rule', rules, addRule)
  each('layer', layers, registerCustomLayer)
  each('reader', readers, addReader)
}
