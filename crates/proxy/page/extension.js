"use strict";
// The background script of the extension that hands downloads to the gateway. A download of a named site is cancelled, and
// begun again at the gateway, which asks the site by HTTP/1.1. If that fails, the browser downloads it itself.

const api = globalThis.browser ?? globalThis.chrome;
const settings = fetch(api.runtime.getURL("settings.json")).then(answer => answer.json());
/** Downloads at the gateway by their numbers: the address that the site has for them. */
const handed = new Map();
/** Addresses that the gateway is not asked for: it has failed for them, or the request was no GET. */
const left = new Set();

function isOf(sites, url) {
  let link;
  try { link = new URL(url); } catch { return false; }
  if (link.protocol !== "http:" && link.protocol !== "https:") return false;
  const host = link.hostname.replace(/^\[|\]$/g, "");
  return sites.some(site => host === site || host.endsWith(`.${site}`));
}

async function isOn() {
  return (await api.storage.local.get({ on: true })).on;
}

async function hand(item) {
  const { address, sites } = await settings;
  const url = item.finalUrl || item.url;
  if (item.byExtensionId === api.runtime.id || !isOf(sites, url) || left.delete(url) || !await isOn()) return;
  const headers = [];
  const cookies = await api.cookies.getAll({ url });
  if (cookies.length > 0) {
    headers.push({ name: "X-Hikyaku-Cookie", value: cookies.map(one => `${one.name}=${one.value}`).join("; ") });
  }
  if (item.referrer) headers.push({ name: "X-Hikyaku-Referer", value: item.referrer });
  const name = new URL(url).pathname.split("/").pop() || "download";
  await api.downloads.cancel(item.id);
  await api.downloads.erase({ id: item.id });
  const id = await api.downloads.download({ url: `${address}get/${name}?${encodeURIComponent(url)}`, headers });
  handed.set(id, url);
}

api.downloads.onCreated.addListener(item => { hand(item).catch(error => console.error(error)); });

api.downloads.onChanged.addListener(async change => {
  const url = handed.get(change.id);
  if (!url || !change.state) return;
  if (change.state.current === "complete") handed.delete(change.id);
  if (change.state.current !== "interrupted") return;
  const [item] = await api.downloads.search({ id: change.id });
  handed.delete(change.id);
  // What was cancelled by the user stays so; what has begun is resumed by the browser's own button.
  if (!item || item.error === "USER_CANCELED" || item.bytesReceived > 0) return;
  await api.downloads.erase({ id: change.id });
  left.add(url);
  await api.downloads.download({ url });
});

// A download that needs anything but GET is the browser's own.
settings.then(({ patterns }) => api.webRequest.onBeforeRequest.addListener(
  request => { if (request.method !== "GET") left.add(request.url); },
  { urls: patterns, types: ["main_frame", "sub_frame"] },
));

async function show() {
  await api.action.setBadgeText({ text: await isOn() ? "" : "off" });
}
api.action.onClicked.addListener(async () => {
  await api.storage.local.set({ on: !await isOn() });
  await show();
});
show();
