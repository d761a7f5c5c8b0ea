"""The list of fields, the types of `perfdb.record` and the store name the same things."""

import dataclasses

from perfdb import fields
from perfdb.record import Case, Figures, PartialCase, Result


def test_the_identity_of_a_case_is_every_field_but_the_derived_ones():
    identity = {*fields.WORKLOAD, *fields.CONFIGURATION}

    assert identity | {*fields.DERIVED} == set(Case.model_fields)
    assert identity.isdisjoint(fields.DERIVED)


def test_a_partial_case_has_the_fields_of_a_case_and_none_is_required():
    assert set(Case.model_fields) == set(PartialCase.model_fields)
    assert not any(field.is_required() for field in PartialCase.model_fields.values())


def test_every_field_of_the_list_is_one_of_a_result():
    assert set(fields.BY_NAME) <= {field.name for field in dataclasses.fields(Result)}


def test_the_figures_that_pages_print_are_those_of_the_record():
    assert set(fields.FIGURES) == set(Figures.model_fields)


def test_no_title_and_no_argument_names_two_fields():
    titles = [title for field in fields.FIELDS for title in field.titles]
    arguments = [argument for field in fields.FIELDS for argument in field.arguments]

    assert len(titles) == len(set(titles))
    assert len(arguments) == len(set(arguments))
