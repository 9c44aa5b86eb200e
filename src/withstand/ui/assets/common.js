"use strict";
// What both pages share: asking the server, elements, numbers. Text from outside only ever becomes a text node.

const Common = (() => {
  const UNKNOWN = "–";
  const known = (value) => value !== null && value !== undefined;

  const node = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // A stranger's words keep their own direction of writing.
  const told = (text) => node("bdi", { textContent: text ?? UNKNOWN });

  // A sentence of ours: what stands between backticks is typed.
  function said(text) {
    const parts = (text ?? UNKNOWN).split("`");
    return parts.length % 2 ? node("bdi", {}, ...parts.map((part, i) => (i % 2 ? node("code", { textContent: part }) : part))) : told(text);
  }

  async function answer(response) {
    const body = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
    if (!response.ok) throw new Error(body.error);
    return body;
  }

  const ask = async (path) => answer(await fetch(path, { cache: "no-store" }));

  const make = async (what, ids) => (await answer(await fetch("/api/make", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ what, ids }),
  }))).url;

  function number(value) {
    if (!known(value)) return UNKNOWN;
    const size = Math.abs(value);
    const digits = size >= 1000 || value === 0 ? 0 : size >= 100 ? 1 : size >= 0.995 ? 2 : 3;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  const count = (value) => (known(value) ? value.toLocaleString("en") : UNKNOWN);

  // "2 min ago" for what is fresh, else the date; the whole instant is in the title.
  function when(at) {
    const age = Date.now() / 1000 - at;
    if (age >= 0 && age < 60) return "just now";
    if (age >= 0 && age < 3600) return `${Math.floor(age / 60)} min ago`;
    const date = new Date(at * 1000);
    if (Number.isNaN(date.getTime())) return UNKNOWN;
    const two = (part) => String(part).padStart(2, "0");
    const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
  }

  function notice(sentence) {
    const place = document.getElementById("notice");
    place.textContent = sentence ?? "";
    place.hidden = !sentence;
  }

  const state = (word) => node("span", { className: `state ${word}`, textContent: word.replaceAll("_", " ") });

  // Something that is made when asked for; the button tells that it is being made.
  function maker(button, what, ids) {
    button.addEventListener("click", async () => {
      const label = button.textContent;
      button.disabled = true;
      button.textContent = "Being made …";
      notice();
      try {
        location.assign(await make(what, ids()));
      } catch (error) {
        notice(error.message);
      }
      button.disabled = false;
      button.textContent = label;
    });
    return button;
  }

  return { UNKNOWN, known, node, told, said, ask, number, count, when, notice, state, maker };
})();
